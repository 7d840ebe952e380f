// What an administrator sees of clients and their state: all of it, once, a page at a time.
#include "nfs/state/listing.h"

#include <gtest/gtest.h>

#include <set>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;
using Type = StateInfo::Type;

class Nfs4Listing : public ::testing::Test {
 protected:
  // Every row, by pages; `between` is called after each.
  template <class Between>
  std::vector<StateInfo> rows(const StateFilter& filter, Between between) {
    std::vector<StateInfo> all;
    StateCursor at;
    StatePage page;
    for (bool more = true; more;) {
      more = world.files.list(at, filter, page);
      EXPECT_LE(page.rows().size(), StatePage::kRows);
      for (const StateInfo& row : page.rows()) all.push_back(row);
      between();
    }
    return all;
  }
  std::vector<StateInfo> rows(const StateFilter& filter = {}) {
    return rows(filter, [] {});
  }
  static std::set<std::array<std::byte, 12>> stateids(const std::vector<StateInfo>& rows) {
    std::set<std::array<std::byte, 12>> all;
    for (const StateInfo& row : rows) all.insert(row.stateid.other);
    return all;
  }
  StateidResult delegate(const testing::Client& client, std::uint64_t number) {
    return world.files.delegate({World::file(number), DelegationType::Read, {}, 0}, client.life);
  }

  World world;
  const testing::Client a = world.client("a"), b = world.client("b");
};

TEST_F(Nfs4Listing, has_every_open_once_whatever_comes_and_goes_meanwhile) {
  constexpr std::uint64_t kFiles = 3000;
  std::set<std::array<std::byte, 12>> kept;
  std::vector<std::pair<std::uint64_t, Stateid>> going;
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    const Stateid stateid = world.open(a, i).stateid;
    if (i % 3 != 0)
      kept.insert(stateid.other);
    else
      going.emplace_back(i, stateid);
  }
  std::uint64_t next = kFiles;
  const auto all = rows({}, [&] {
    for (int i = 0; i < 8 && !going.empty(); ++i, going.pop_back())
      world.files.close(World::file(going.back().first), going.back().second, *a.life);
    for (int i = 0; i < 8; ++i) world.open(b, next++);
  });
  const auto found = stateids(all);
  EXPECT_EQ(found.size(), all.size()) << "a row came twice";
  for (const auto& stateid : kept) ASSERT_TRUE(found.contains(stateid));
}

TEST_F(Nfs4Listing, tells_clients_and_types_apart) {
  const Stateid of_a = world.open(a, 1).stateid, of_b = world.open(b, 2).stateid;
  const Stateid lock = world.lock(a, 1, of_a, {5, 9}, true).stateid;
  EXPECT_EQ(stateids(rows()), (std::set{of_a.other, of_b.other, lock.other}));
  EXPECT_EQ(stateids(rows({a.id, std::nullopt})), (std::set{of_a.other, lock.other}));
  EXPECT_EQ(stateids(rows({std::nullopt, Type::Open})), (std::set{of_a.other, of_b.other}));
  const auto locks = rows({std::nullopt, Type::Lock});
  ASSERT_EQ(locks.size(), 1u);
  EXPECT_EQ(locks[0].clientid, a.id);
  EXPECT_EQ(locks[0].owner, "locker");
  EXPECT_EQ(locks[0].file, World::file(1));
  EXPECT_EQ(locks[0].ranges, (std::vector<std::pair<Range, bool>>{{Range{5, 9}, true}}));
}

TEST_F(Nfs4Listing, has_every_range_of_an_owner_with_thousands_once) {
  const Stateid open = world.open(a, 1).stateid;
  Stateid lock = world.lock(a, 1, open, {0, 0}, true).stateid;
  lock.seqid = 0;  // whatever it is by now
  constexpr std::uint64_t kRanges = 3000;
  for (std::uint64_t i = 1; i < kRanges; ++i)
    world.lock_more(a, 1, lock, {2 * i, 2 * i}, i % 2 == 0);
  std::set<std::uint64_t> first;
  for (const StateInfo& row : rows({std::nullopt, Type::Lock})) {
    EXPECT_LE(row.ranges.size(), StatePage::kRangesOfRow);
    for (const auto& [range, exclusive] : row.ranges) {
      EXPECT_TRUE(first.insert(range.first).second) << "twice";
      EXPECT_EQ(exclusive, range.first / 2 % 2 == 0);
    }
  }
  EXPECT_EQ(first.size(), kRanges);
}

TEST_F(Nfs4Listing, shows_delegations_and_that_they_are_recalled_or_revoked) {
  const Stateid stateid = delegate(a, 1).stateid;
  auto found = rows({std::nullopt, Type::Delegation});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].stateid, stateid);
  EXPECT_FALSE(found[0].recalled);
  EXPECT_EQ(world.open(b, 1).verdict.kind, Verdict::Kind::Recall);
  EXPECT_TRUE(rows()[0].recalled);
  EXPECT_EQ(world.files.revoke(stateid), Status::Ok);
  EXPECT_EQ(rows()[0].revoked, Status::AdminRevoked);
}

TEST_F(Nfs4Listing, counts_what_each_client_holds) {
  const Stateid open = world.open(a, 1).stateid;
  world.open(a, 2);
  Stateid lock = world.lock(a, 1, open, {0, 9}, true).stateid;
  lock.seqid = 0;  // whatever it is by now
  world.lock_more(a, 1, lock, {20, 29}, true);
  delegate(b, 3);
  const std::array<ClientId, 3> ids{a.id, b.id, 4711};
  std::array<HeldCounts, 3> counts;
  world.files.count_held(ids, counts);
  EXPECT_EQ(counts[0].opens, 2u);
  EXPECT_EQ(counts[0].locks, 2u);
  EXPECT_EQ(counts[0].delegations, 0u);
  EXPECT_EQ(counts[1].delegations, 1u);
  EXPECT_EQ(counts[2].opens, 0u);
  EXPECT_EQ(world.files.unlock(World::file(1), lock, {0, 9}, *a.life).status, Status::Ok);
  world.files.count_held(ids, counts);
  EXPECT_EQ(counts[0].locks, 1u);
  EXPECT_EQ(world.files.close(World::file(1), open, *a.life).status, Status::Ok);
  world.files.count_held(ids, counts);
  EXPECT_EQ(counts[0].opens, 1u);
  EXPECT_EQ(counts[0].locks, 0u);
}

TEST_F(Nfs4Listing, shows_clients_with_their_version_and_whether_they_can_be_called) {
  world.now += std::chrono::seconds(7);
  std::size_t listed = 0;
  for (std::uint32_t shard = 0; shard < Clients::kShards; ++shard)
    listed += world.clients.ids(shard).size();
  EXPECT_EQ(listed, 2u);
  const auto info = world.clients.info(a.id, world.now);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->co_ownerid, "a");
  EXPECT_EQ(info->address, "192.0.2.1");
  EXPECT_EQ(info->minor, 1u);
  EXPECT_TRUE(info->confirmed);
  EXPECT_EQ(info->sessions, 1u);
  EXPECT_EQ(info->idle, std::chrono::seconds(7));
  EXPECT_EQ(info->callbacks, CallbackState::None);
  auto connection = std::make_shared<int>(0);
  world.clients.bind_connection(a.session, 5, channel::kBoth, channel::kFore, connection);
  EXPECT_EQ(world.clients.info(a.id, world.now)->callbacks, CallbackState::Bound);
  connection = nullptr;
  EXPECT_EQ(world.clients.info(a.id, world.now)->callbacks, CallbackState::Lost);
  world.clients.backchannel_fault(a.session);
  EXPECT_EQ(world.clients.info(a.id, world.now)->callbacks, CallbackState::Fault);
  EXPECT_FALSE(world.clients.info(4711, world.now));
}

}  // namespace
}  // namespace stag::nfs::state
