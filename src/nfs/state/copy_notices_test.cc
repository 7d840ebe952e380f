// Files that other servers may copy (RFC 7862 4.6.2, 15.3, 15.8).
#include "nfs/state/copy_notices.h"

#include <map>
#include <set>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using namespace std::chrono_literals;
using testing::Client;
using testing::World;

constexpr std::uint32_t kOfClient = 4, kAll = 6;

class CopyNotice : public ::testing::Test {
 protected:
  StateidResult notify(const Client& client, std::uint64_t number, const Stateid& source,
                       std::uint64_t destination = 1) {
    return notices_.notify({World::file(number), source, destination}, client.life, world_.now);
  }
  bool admits(std::uint64_t number, const Stateid& stateid) {
    return notices_.admits(World::file(number), stateid, world_.now);
  }
  bool cancel(const Client& client, std::uint64_t number, const Stateid& stateid) {
    return notices_.cancel(World::file(number), stateid, *client.life);
  }
  // Of a file that the client opens for it.
  Stateid noticed(const Client& client, std::uint64_t number) {
    const StateidResult result = notify(client, number, world_.open(client, number).stateid);
    EXPECT_EQ(result.status, Status::Ok);
    return result.stateid;
  }
  void close(const Client& client, std::uint64_t number, const Stateid& stateid) {
    EXPECT_EQ(world_.files.close(World::file(number), stateid, *client.life).status, Status::Ok);
  }

  World world_;
  CopyNotices notices_{world_.files,
                       {.epoch = 1, .key = {}, .lease = World::lease, .limits = {kOfClient, kAll}}};
  const Client client_ = world_.client("a client"), other_ = world_.client("another one");
};

TEST_F(CopyNotice, lets_whoever_knows_its_stateid_read_its_file_alone) {
  const Stateid open = world_.open(client_, 1).stateid;
  const Stateid stateid = notify(client_, 1, open).stateid;
  EXPECT_NE(stateid.other, open.other);
  EXPECT_EQ(stateid.seqid, 1u);
  EXPECT_TRUE(admits(1, stateid));
  EXPECT_TRUE(admits(1, {0, stateid.other})) << "RFC 8881 8.2.2: the latest one";
  EXPECT_FALSE(admits(1, {2, stateid.other}));
  EXPECT_FALSE(admits(2, stateid));
}

TEST_F(CopyNotice, admits_no_stateid_that_was_not_given) {
  const Stateid open = world_.open(client_, 1).stateid;
  const Stateid stateid = notify(client_, 1, open).stateid;
  EXPECT_FALSE(admits(1, open));
  EXPECT_FALSE(admits(1, kAnonymousStateid));
  EXPECT_FALSE(admits(1, kBypassStateid));
  for (std::size_t byte = 0; byte < stateid.other.size(); ++byte) {
    Stateid guessed = stateid;
    guessed.other[byte] ^= std::byte{1};
    EXPECT_FALSE(admits(1, guessed)) << byte;
  }
}

TEST_F(CopyNotice, has_a_stateid_that_depends_on_the_key) {
  const Stateid stateid = noticed(client_, 1);
  SipKey key{};
  key[3] = std::byte{1};
  CopyNotices others(world_.files, {.epoch = 1, .key = key, .lease = World::lease, .limits = {}});
  const Stateid open = world_.open(client_, 1).stateid;
  const StateidResult result = others.notify({World::file(1), open, 1}, client_.life, world_.now);
  EXPECT_NE(result.stateid.other, stateid.other);
}

TEST_F(CopyNotice, is_no_stateid_of_anything_else) {
  const Stateid stateid = noticed(client_, 1);
  EXPECT_EQ(world_.files.test_stateid(stateid, *client_.life), Status::BadStateid);
  EXPECT_EQ(world_.files.free_stateid(stateid, *client_.life), Status::BadStateid);
  EXPECT_EQ(world_.files.check(World::file(1), stateid, *client_.life, Touch::Read).status,
            Status::BadStateid);
  EXPECT_EQ(notify(client_, 1, stateid).status, Status::BadStateid);
}

TEST_F(CopyNotice, is_given_for_an_open_for_reading_its_locks_and_a_delegation) {
  const Stateid open = world_.open(client_, 1, kShareRead).stateid;
  EXPECT_EQ(notify(client_, 1, open).status, Status::Ok);
  const LockResult locked = world_.lock(client_, 1, open, *byte_range(0, 10), false);
  EXPECT_EQ(notify(client_, 1, locked.stateid).status, Status::Ok);
  const StateidResult delegated =
      world_.files.delegate({World::file(1), DelegationType::Read, {}}, client_.life);
  ASSERT_EQ(delegated.status, Status::Ok);
  const StateidResult of_delegation = notify(client_, 1, delegated.stateid);
  EXPECT_EQ(of_delegation.status, Status::Ok);
  EXPECT_TRUE(admits(1, of_delegation.stateid));
}

TEST_F(CopyNotice, is_not_given_for_anything_else) {
  const Stateid writing = world_.open(client_, 1, kShareWrite).stateid;
  EXPECT_EQ(notify(client_, 1, writing).status, Status::Openmode);
  const Stateid open = world_.open(client_, 1, kShareRead, 0, "a reader").stateid;
  EXPECT_EQ(notify(client_, 2, open).status, Status::BadStateid) << "another file";
  EXPECT_EQ(notify(other_, 1, open).status, Status::BadStateid) << "another client";
  EXPECT_EQ(notify(client_, 1, kAnonymousStateid).status, Status::BadStateid);
  EXPECT_EQ(notify(client_, 1, kBypassStateid).status, Status::BadStateid);
  world_.open(client_, 1, kShareRead, 0, "a reader");
  EXPECT_EQ(notify(client_, 1, open).status, Status::OldStateid);
  EXPECT_EQ(notices_.size(), 0u);
}

TEST_F(CopyNotice, ends_a_lease_after_it_was_used_last) {
  const Stateid stateid = noticed(client_, 1);
  for (int i = 0; i < 4; ++i) {
    world_.now += World::lease - 1s;
    notices_.expire(world_.now);
    EXPECT_TRUE(admits(1, stateid));
  }
  world_.now += World::lease;
  EXPECT_FALSE(admits(1, stateid)) << "also where nobody has called expire()";
  EXPECT_EQ(notices_.size(), 1u);
  notices_.expire(world_.now);
  EXPECT_EQ(notices_.size(), 0u);
}

// RFC 7862 15.3: to renew the copy lease, the client sends the same again.
TEST_F(CopyNotice, is_renewed_by_the_same_request) {
  const Stateid open = world_.open(client_, 1).stateid;
  const Stateid stateid = notify(client_, 1, open).stateid;
  world_.now += World::lease - 1s;
  EXPECT_EQ(notify(client_, 1, open).stateid, stateid);
  world_.now += World::lease - 1s;
  EXPECT_TRUE(admits(1, stateid));
  EXPECT_NE(notify(client_, 1, open, 2).stateid, stateid) << "another destination";
  EXPECT_EQ(notices_.size(), 2u);
}

TEST_F(CopyNotice, ends_with_the_open) {
  const Stateid open = world_.open(client_, 1).stateid;
  const Stateid stateid = notify(client_, 1, open).stateid;
  close(client_, 1, open);
  EXPECT_FALSE(admits(1, stateid));
  EXPECT_EQ(notices_.size(), 0u);
  world_.open(client_, 1);
  EXPECT_FALSE(admits(1, stateid)) << "another open in its place";
}

TEST_F(CopyNotice, ends_with_an_open_that_is_for_reading_no_more) {
  Stateid open = world_.open(client_, 1, kShareRead).stateid;
  open = world_.open(client_, 1, kShareWrite).stateid;
  const Stateid stateid = notify(client_, 1, open).stateid;
  ASSERT_EQ(world_.files.open_downgrade(World::file(1), open, kShareWrite, 0, *client_.life).status,
            Status::Ok);
  EXPECT_FALSE(admits(1, stateid));
}

TEST_F(CopyNotice, survives_that_its_open_has_a_later_seqid) {
  const Stateid stateid = noticed(client_, 1);
  world_.open(client_, 1);
  EXPECT_TRUE(admits(1, stateid));
}

TEST_F(CopyNotice, ends_with_locks_a_delegation_and_what_is_revoked) {
  const Stateid open = world_.open(client_, 1).stateid;
  const Stateid lock = world_.lock(client_, 1, open, *byte_range(0, 10), true).stateid;
  const Stateid of_lock = notify(client_, 1, lock).stateid;
  EXPECT_TRUE(admits(1, of_lock));
  world_.files.unlock(World::file(1), lock, *byte_range(0, 10), *client_.life);
  close(client_, 1, open);
  EXPECT_FALSE(admits(1, of_lock));

  world_.open(client_, 2);
  const Stateid delegation =
      world_.files.delegate({World::file(2), DelegationType::Write, {}}, client_.life).stateid;
  const Stateid of_delegation = notify(client_, 2, delegation).stateid;
  EXPECT_TRUE(admits(2, of_delegation));
  world_.files.return_delegation(World::file(2), delegation, *client_.life);
  EXPECT_FALSE(admits(2, of_delegation));

  const Stateid third = world_.open(client_, 3).stateid;
  const Stateid of_third = notify(client_, 3, third).stateid;
  EXPECT_EQ(world_.files.revoke(third), Status::Ok);
  EXPECT_FALSE(admits(3, of_third));
}

TEST_F(CopyNotice, ends_with_its_client) {
  const Stateid stateid = noticed(client_, 1), others = noticed(other_, 1);
  noticed(client_, 3);
  const LifePtr ended = world_.clients.end(client_.id, false);
  ASSERT_NE(ended, nullptr);
  EXPECT_FALSE(admits(1, stateid)) << "its opens are still there";
  const Stateid second = noticed(other_, 2);
  notices_.release(*ended);
  EXPECT_EQ(notices_.size(), 2u);
  EXPECT_TRUE(admits(1, others) && admits(2, second));
}

TEST_F(CopyNotice, is_not_given_to_a_client_that_has_ended) {
  const Stateid open = world_.open(client_, 1).stateid;
  const LifePtr ended = world_.clients.end(client_.id, false);
  notices_.release(*ended);
  EXPECT_EQ(notify(client_, 1, open).status, Status::Expired);
  EXPECT_EQ(notices_.size(), 0u);
}

TEST_F(CopyNotice, is_cancelled_by_its_client_by_file_and_stateid) {
  const Stateid stateid = noticed(client_, 1);
  EXPECT_FALSE(cancel(other_, 1, stateid));
  EXPECT_FALSE(cancel(client_, 2, stateid));
  EXPECT_FALSE(cancel(client_, 1, {0, stateid.other})) << "RFC 7862 4.8";
  EXPECT_TRUE(admits(1, stateid));
  EXPECT_TRUE(cancel(client_, 1, stateid));
  EXPECT_FALSE(admits(1, stateid));
  EXPECT_FALSE(cancel(client_, 1, stateid));
}

TEST_F(CopyNotice, gets_another_stateid_after_it_was_cancelled) {
  const Stateid open = world_.open(client_, 1).stateid;
  const Stateid stateid = notify(client_, 1, open).stateid;
  EXPECT_TRUE(cancel(client_, 1, stateid));
  EXPECT_NE(notify(client_, 1, open).stateid, stateid);
  EXPECT_FALSE(admits(1, stateid));
}

TEST_F(CopyNotice, is_one_of_few_of_a_client) {
  std::set<std::array<std::byte, 12>> names;
  for (std::uint32_t i = 0; i < kOfClient; ++i) names.insert(noticed(client_, i).other);
  EXPECT_EQ(names.size(), kOfClient);
  const Stateid open = world_.open(client_, 99).stateid;
  const StateidResult refused = notify(client_, 99, open);
  EXPECT_EQ(refused.status, Status::Delay);
  EXPECT_EQ(refused.limit, Limit::Client);
  EXPECT_EQ(notices_.size(), kOfClient);
  noticed(other_, 1);
  world_.now += World::lease;
  notices_.expire(world_.now);
  EXPECT_EQ(notify(client_, 99, open).status, Status::Ok);
}

TEST_F(CopyNotice, is_one_of_few_of_all_clients) {
  for (std::uint32_t i = 0; i < kOfClient; ++i) noticed(client_, i);
  for (std::uint32_t i = kOfClient; i < kAll; ++i) noticed(other_, i);
  const StateidResult refused = notify(other_, 99, world_.open(other_, 99).stateid);
  EXPECT_EQ(refused.status, Status::Delay);
  EXPECT_EQ(refused.limit, Limit::All);
  EXPECT_EQ(notices_.size(), kAll);
}

// Of a client that has nothing to give up itself.
TEST_F(CopyNotice, makes_room_for_other_clients_once_its_open_is_gone) {
  const Stateid kept = noticed(client_, 1000);
  std::map<std::uint32_t, Stateid> opens;
  for (std::uint32_t i = 0; i < kOfClient; ++i) {
    opens[i] = world_.open(other_, i).stateid;
    ASSERT_EQ(notify(other_, i, opens[i]).status, Status::Ok);
  }
  noticed(world_.client("a third one"), 1001);
  const Client fourth = world_.client("a fourth one");
  const Stateid open = world_.open(fourth, 1002).stateid;
  ASSERT_EQ(notify(fourth, 1002, open).limit, Limit::All);
  for (const auto& [i, each] : opens) close(other_, i, each);
  EXPECT_EQ(notify(fourth, 1002, open).status, Status::Ok);
  EXPECT_TRUE(admits(1000, kept));
}

// A client that copies many small files closes each, and cancels nothing.
TEST_F(CopyNotice, makes_room_once_its_open_is_gone) {
  const Stateid kept = noticed(client_, 1000);
  for (std::uint32_t i = 0; i < 10 * kOfClient; ++i) {
    const Stateid open = world_.open(client_, i).stateid;
    EXPECT_EQ(notify(client_, i, open).status, Status::Ok) << i;
    close(client_, i, open);
  }
  EXPECT_LE(notices_.size(), kOfClient);
  EXPECT_TRUE(admits(1000, kept));
}

}  // namespace
}  // namespace stag::nfs::state
