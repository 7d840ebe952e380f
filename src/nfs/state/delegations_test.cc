// The sentences of RFC 8881 10.4 on delegations, and Files against a list of facts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "testing/nfs/state_model.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;
using VerdictKind = Verdict::Kind;

constexpr std::uint32_t kReads = kShareRead, kWrites = kShareWrite, kReadsAndWrites = kShareBoth;

class Nfs4StateDelegations : public ::testing::Test {
 protected:
  Nfs4StateDelegations() {
    world.files.on_recall([this](const Recall& recall) { recalls.push_back(recall); });
  }
  StateidResult delegate(const testing::Client& client, DelegationType type) {
    return world.files.delegate({file, type, {}}, client.life);
  }
  Verdict open(const testing::Client& client, std::uint32_t access, std::uint32_t deny = 0) {
    return world.open(client, 1, access, deny, "owner").verdict;
  }

  World world;
  const testing::Client a = world.client("a"), b = world.client("b");
  const FileKey file = World::file(1);
  std::vector<Recall> recalls;
};

TEST_F(Nfs4StateDelegations, a_conflict_is_told_once_and_lasts_until_the_return) {
  const StateidResult made = delegate(a, DelegationType::Read);
  ASSERT_EQ(made.status, Status::Ok);
  EXPECT_EQ(open(b, kReads).kind, VerdictKind::Granted);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(open(b, kWrites).kind, VerdictKind::Recall);
  ASSERT_EQ(recalls.size(), 1u);
  EXPECT_EQ(recalls[0].stateid, made.stateid);
  EXPECT_EQ(recalls[0].clientid, a.id);
  EXPECT_EQ(world.files.return_delegation(file, made.stateid, *a.life), Status::Ok);
  EXPECT_EQ(open(b, kWrites).kind, VerdictKind::Granted);
  EXPECT_FALSE(world.files.is_delegated(made.stateid));
}

// The caller may have no permission.
TEST_F(Nfs4StateDelegations, stand_as_they_are_until_the_asking_caller_says_that_it_may) {
  const Stateid stateid = delegate(a, DelegationType::Write).stateid;
  EXPECT_EQ(world.files.access(file, Touch::Write).kind, VerdictKind::Recall);
  EXPECT_EQ(world.files.check(file, kAnonymousStateid, *b.life, Touch::Read).kind,
            VerdictKind::Recall);
  EXPECT_TRUE(recalls.empty());
  EXPECT_FALSE(world.files.list(a.id, 1).at(0).recalled);
  world.files.recall(file, Touch::Write, a.life.get());
  EXPECT_TRUE(recalls.empty()) << "it is his own";
  for (int i = 0; i < 2; ++i) world.files.recall(file, Touch::Read, b.life.get());
  ASSERT_EQ(recalls.size(), 1u);
  EXPECT_EQ(recalls[0].stateid, stateid);
}

TEST_F(Nfs4StateDelegations, are_wanted_back_without_a_conflict_once) {
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  const Stateid other = delegate(b, DelegationType::Read).stateid;
  for (int i = 0; i < 2; ++i) world.files.recall(stateid);
  ASSERT_EQ(recalls.size(), 1u);
  EXPECT_EQ(recalls[0].stateid, stateid);
  EXPECT_EQ(recalls[0].clientid, a.id);
  EXPECT_EQ(open(b, kWrites).kind, VerdictKind::Recall);
  EXPECT_EQ(recalls.size(), 1u) << "it was told of that";
  world.files.recall(other);
  ASSERT_EQ(recalls.size(), 2u);
  EXPECT_EQ(recalls[1].stateid, other);
}

TEST_F(Nfs4StateDelegations, are_wanted_back_again_where_nobody_could_be_told) {
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  bool full = true;
  world.files.on_recall([&](const Recall& recall) {
    if (full) throw std::bad_alloc();
    recalls.push_back(recall);
  });
  EXPECT_THROW(world.files.recall(stateid), std::bad_alloc);
  full = false;
  for (int i = 0; i < 2; ++i) world.files.recall(stateid);
  EXPECT_EQ(recalls.size(), 1u);
}

TEST_F(Nfs4StateDelegations, are_not_wanted_back_when_they_are_gone) {
  const Stateid returned = delegate(a, DelegationType::Read).stateid;
  ASSERT_EQ(world.files.return_delegation(file, returned, *a.life), Status::Ok);
  const Stateid revoked = delegate(b, DelegationType::Read).stateid;
  world.files.revoke_delegation(revoked);
  for (const Stateid& gone : {returned, revoked}) world.files.recall(gone);
  EXPECT_TRUE(recalls.empty());
}

TEST_F(Nfs4StateDelegations, are_not_given_before_their_time) {
  using std::chrono::seconds;
  const auto at = [&](std::uint64_t number, TimePoint now) {
    const DelegateArgs args{World::file(number), DelegationType::Read, {}, 0, false, now};
    return world.files.delegate(args, a.life).status;
  };
  world.files.hold_back(file, world.now + seconds(30));
  EXPECT_EQ(at(1, world.now + seconds(29)), Status::Denied);
  EXPECT_EQ(at(2, world.now), Status::Ok) << "another file";
  EXPECT_EQ(at(1, world.now + seconds(30)), Status::Ok);
  a.life->no_delegation_before = world.now + seconds(60);
  EXPECT_EQ(at(3, world.now + seconds(59)), Status::Denied);
  EXPECT_EQ(at(3, world.now + seconds(60)), Status::Ok);
}

TEST_F(Nfs4StateDelegations, are_reclaimed_although_new_ones_are_held_back) {
  world.grace->begin(world.now + std::chrono::seconds(90), true);
  world.files.hold_back(file, world.now + std::chrono::seconds(30));
  const DelegateArgs args{file, DelegationType::Read, {}, 0, true, world.now};
  EXPECT_EQ(world.files.delegate(args, a.life).status, Status::Ok);
}

TEST_F(Nfs4StateDelegations, are_recalled_from_all_readers_but_the_one_that_writes) {
  const testing::Client c = world.client("c");
  for (const auto* client : {&a, &b, &c})
    ASSERT_EQ(delegate(*client, DelegationType::Read).status, Status::Ok);
  EXPECT_EQ(open(b, kReadsAndWrites).kind, VerdictKind::Recall);
  EXPECT_EQ(recalls.size(), 2u);
  for (const Recall& recall : recalls) EXPECT_NE(recall.clientid, b.id);
}

// How many leases there are.
struct CountedLease final : vfs::Lease {
  explicit CountedLease(int& of) : count(of) { ++count; }
  ~CountedLease() override { --count; }
  std::optional<Duration> wanted() const override { return std::nullopt; }
  int& count;
};

TEST_F(Nfs4StateDelegations, keep_a_lease_until_they_are_gone_in_whatever_way) {
  int leases = 0;
  const auto keep = [&] {
    const StateidResult made = delegate(a, DelegationType::Read);
    EXPECT_EQ(made.status, Status::Ok);
    world.files.keep_lease(made.stateid, std::make_shared<CountedLease>(leases));
    EXPECT_EQ(leases, 1);
    return made.stateid;
  };
  EXPECT_EQ(world.files.return_delegation(file, keep(), *a.life), Status::Ok);
  EXPECT_EQ(leases, 0);
  const Stateid revoked = keep();
  world.files.revoke_delegation(revoked);
  EXPECT_EQ(leases, 0) << "although its stateid is still there";
  world.files.keep_lease(revoked, std::make_shared<CountedLease>(leases));
  EXPECT_EQ(leases, 0) << "there is nothing any more that it could go with";
  EXPECT_EQ(world.files.free_stateid(revoked, *a.life), Status::Ok);
  keep();
  world.files.release(*a.life);
  EXPECT_EQ(leases, 0);
}

TEST_F(Nfs4StateDelegations, a_waiting_request_is_told_when_one_is_gone) {
  const Stateid stateid = delegate(a, DelegationType::Write).stateid;
  int told = 0;
  const auto wait = [&] { return world.files.wait(file, [&told] { ++told; }); };
  EXPECT_EQ(open(b, kReads).kind, VerdictKind::Recall);
  const Waiting one = wait(), other = wait();
  EXPECT_EQ(one.how, Wait::Begun);
  EXPECT_EQ(other.how, Wait::Begun);
  EXPECT_EQ(told, 0);
  world.files.revoke_delegation(stateid);
  EXPECT_EQ(told, 2);
  EXPECT_EQ(wait().how, Wait::NoNeed);
}

TEST_F(Nfs4StateDelegations, are_waited_for_by_nobody_who_gave_up) {
  const Stateid stateid = delegate(a, DelegationType::Write).stateid;
  const auto counted = std::make_shared<int>(0);  // as many refer to it as wait
  const auto wait = [&] { return world.files.wait(file, [counted] { ++*counted; }); };
  const Waiting first = wait();
  std::optional<Waiting> second = wait();
  const Waiting third = wait();
  second.reset();
  for (std::uint32_t i = 0; i < 3 * StateLimits{}.waiting; ++i) ASSERT_EQ(wait().how, Wait::Begun);
  EXPECT_EQ(counted.use_count(), 3) << "the test, and two who wait";
  world.files.return_delegation(file, stateid, *a.life);
  EXPECT_EQ(*counted, 2);
  EXPECT_EQ(counted.use_count(), 1);
}

TEST_F(Nfs4StateDelegations, go_although_who_waits_finds_no_memory) {
  const Stateid stateid = delegate(a, DelegationType::Write).stateid;
  int told = 0;
  const Waiting one = world.files.wait(file, [] { throw std::bad_alloc(); });
  const Waiting other = world.files.wait(file, [&told] { ++told; });
  world.files.return_delegation(file, stateid, *a.life);
  EXPECT_EQ(told, 1);
}

TEST_F(Nfs4StateDelegations, no_more_than_so_many_wait_for_one_file) {
  delegate(a, DelegationType::Write);
  std::vector<Waiting> all;
  for (std::uint32_t i = 0; i < StateLimits{}.waiting; ++i) {
    all.push_back(world.files.wait(file, [] {}));
    ASSERT_EQ(all.back().how, Wait::Begun);
  }
  EXPECT_EQ(world.files.wait(file, [] {}).how, Wait::TooMany);
  all.pop_back();
  EXPECT_EQ(world.files.wait(file, [] {}).how, Wait::Begun);
}

TEST_F(Nfs4StateDelegations, are_not_given_while_one_of_the_file_is_recalled) {
  const testing::Client c = world.client("c");
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  EXPECT_EQ(delegate(b, DelegationType::Read).status, Status::Ok);
  world.files.recall(stateid);
  EXPECT_EQ(delegate(c, DelegationType::Read).status, Status::Denied)
      << "who wants to write asks again after he has given up waiting";
  world.files.return_delegation(file, stateid, *a.life);
  EXPECT_EQ(delegate(c, DelegationType::Read).status, Status::Ok);
}

TEST_F(Nfs4StateDelegations, a_revoked_one_is_DELEG_REVOKED_until_it_is_freed) {
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  EXPECT_EQ(world.files.free_stateid(stateid, *a.life), Status::LocksHeld);
  world.files.revoke_delegation(stateid);
  EXPECT_EQ(a.life->recallable_revoked.load(), 1u);
  EXPECT_EQ(a.life->admin_revoked.load(), 0u);
  EXPECT_EQ(world.files.test_stateid(stateid, *a.life), Status::DelegRevoked);
  EXPECT_EQ(world.files.return_delegation(file, stateid, *a.life), Status::DelegRevoked);
  EXPECT_EQ(open(b, kWrites).kind, VerdictKind::Granted);
  EXPECT_EQ(world.files.free_stateid(stateid, *a.life), Status::Ok);
  EXPECT_EQ(a.life->recallable_revoked.load(), 0u);
  EXPECT_EQ(world.files.test_stateid(stateid, *a.life), Status::BadStateid);
}

TEST_F(Nfs4StateDelegations, a_lapsed_client_is_named_and_an_ended_one_holds_nothing) {
  delegate(a, DelegationType::Write);
  a.life->phase = Life::Phase::Lapsed;
  const Verdict lapsed = open(b, kReads);
  EXPECT_EQ(lapsed.kind, VerdictKind::Lapsed);
  EXPECT_EQ(lapsed.who, a.id);
  a.life->phase = Life::Phase::Ended;
  EXPECT_EQ(open(b, kReads).kind, VerdictKind::Granted);
  EXPECT_TRUE(recalls.empty());
  EXPECT_EQ(a.life->states.load(), 0u);
}

TEST_F(Nfs4StateDelegations, a_share_that_denies_reading_is_against_readers) {
  delegate(a, DelegationType::Read);
  EXPECT_EQ(open(b, kReads, kWrites).kind, VerdictKind::Granted);
  EXPECT_EQ(open(world.client("c"), kReads, kReads).kind, VerdictKind::Refused);
  EXPECT_TRUE(recalls.empty());
}

TEST_F(Nfs4StateDelegations, are_recalled_before_an_open_of_their_holder_denies_anybody_anything) {
  const auto opened = world.open(a, 1, kReads, 0, "owner");
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(open(b, kReads, kReads).kind, VerdictKind::Recall);
  ASSERT_EQ(recalls.size(), 1u);
  EXPECT_EQ(recalls[0].stateid, stateid);
  EXPECT_EQ(world.files.close(file, opened.stateid, *a.life).status, Status::Ok);
  EXPECT_EQ(world.files.return_delegation(file, stateid, *a.life), Status::Ok);
  EXPECT_TRUE(open(b, kReads, kReads).granted()) << "no program had it open";
}

TEST_F(Nfs4StateDelegations, are_recalled_once_for_an_open_that_stays_in_the_way) {
  world.open(a, 1, kReads, kWrites, "owner");
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  EXPECT_EQ(world.files.share_conflict(file, kReadsAndWrites, 0).kind, VerdictKind::Recall);
  EXPECT_EQ(recalls.size(), 1u);
  EXPECT_EQ(world.files.return_delegation(file, stateid, *a.life), Status::Ok);
  EXPECT_EQ(open(b, kWrites).status, Status::ShareDenied);
  EXPECT_EQ(world.files.share_conflict(file, kReadsAndWrites, 0).status, Status::ShareDenied);
}

TEST_F(Nfs4StateDelegations, are_not_recalled_where_an_open_of_somebody_else_is_in_the_way_anyway) {
  world.open(a, 1, kReads, 0, "owner");
  delegate(a, DelegationType::Read);
  world.open(world.client("c"), 1, kReads, 0, "owner");
  EXPECT_EQ(open(b, kReads, kReads).status, Status::ShareDenied);
  EXPECT_EQ(open(a, kReads, kReads).status, Status::ShareDenied) << "of its own, too";
  EXPECT_TRUE(recalls.empty());
}

TEST_F(Nfs4StateDelegations, are_not_recalled_for_more_opens_than_are_looked_through) {
  constexpr int kOpensLookedAt = 64;
  delegate(a, DelegationType::Read);
  for (int i = 0; i < 10 * kOpensLookedAt; ++i)
    world.open(a, 1, kReads, 0, "no conflict " + std::to_string(i));
  for (int i = 0; i < kOpensLookedAt; ++i) world.open(a, 1, kReads, kWrites, std::to_string(i));
  EXPECT_EQ(open(b, kWrites).kind, VerdictKind::Recall) << "others are not counted";
  const auto one_more = world.open(a, 1, kReads, kWrites, "one more");
  EXPECT_EQ(open(b, kWrites).status, Status::ShareDenied);
  EXPECT_EQ(world.files.close(file, one_more.stateid, *a.life).status, Status::Ok);
  EXPECT_EQ(open(b, kWrites).kind, VerdictKind::Recall);
}

TEST_F(Nfs4StateDelegations, are_not_recalled_from_a_lapsed_client_before_it_ends) {
  const testing::Client c = world.client("c");
  world.open(a, 1, kReads, 0, "owner");
  world.open(c, 1, kReads, 0, "owner");
  delegate(a, DelegationType::Read);
  delegate(c, DelegationType::Read);
  for (const auto* client : {&a, &c}) {
    client->life->phase = Life::Phase::Lapsed;
    const Verdict lapsed = open(b, kReads, kReads);
    EXPECT_EQ(lapsed.kind, VerdictKind::Lapsed);
    EXPECT_EQ(lapsed.who, client->id);
    client->life->phase = Life::Phase::Active;
  }
  EXPECT_TRUE(recalls.empty());
}

TEST(Nfs4DelegationLimits, an_address_has_no_more_than_it_leaves_free) {
  StateLimits limits;
  limits.delegations = 16;
  World world(1, {}, limits);
  std::uint64_t file = 0;
  const auto fill = [&](const testing::Client& client) {
    int count = 0;
    StateidResult made;
    while (
        (made = world.files.delegate({World::file(++file), DelegationType::Read, {}}, client.life))
            .status == Status::Ok)
      ++count;
    return std::pair(count, made.limit);
  };
  const auto first = world.client("first", "192.0.2.1");
  EXPECT_EQ(fill(first), std::pair(8, Limit::Address));
  EXPECT_EQ(fill(world.client("second", "192.0.2.2")), std::pair(4, Limit::All));
  EXPECT_EQ(fill(world.client("third", "192.0.2.3")), std::pair(2, Limit::All));
  world.files.release(*world.clients.end(first.id, false));
  EXPECT_EQ(first.life->account->delegations.load(), 0u);
  EXPECT_EQ(fill(world.client("another", "192.0.2.1")).first, 5);
}

TEST(Nfs4DelegationLimits, let_a_holder_claim_what_it_had_to_itself_whatever_others_have) {
  StateLimits limits;
  limits.states = 16;
  limits.states_of_address = 8;
  World world(1, {}, limits);
  const auto holder = world.client("holder", "192.0.2.1"), other = world.client("o", "192.0.2.2");
  const FileKey file = World::file(100);
  EXPECT_TRUE(world.open(holder, 100).verdict.granted());
  EXPECT_EQ(world.files.delegate({file, DelegationType::Write, {}}, holder.life).status,
            Status::Ok);
  for (std::uint64_t i = 0; world.open(other, i).verdict.granted(); ++i) continue;
  for (std::uint64_t i = 0; world.open(holder, i).verdict.granted(); ++i) continue;
  OpenArgs args{file, bytes_of("another owner"), kShareBoth, 0};
  EXPECT_EQ(world.files.open(args, holder.life).limit, Limit::All);
  args.delegated = true;
  const OpenResult opened = world.files.open(args, holder.life);
  ASSERT_TRUE(opened.verdict.granted());
  EXPECT_TRUE(world.lock(holder, 100, opened.stateid, {0, 9}, true).verdict.granted());
  const Stateid elsewhere = world.open(holder, 0).stateid;
  EXPECT_EQ(world.lock(holder, 0, elsewhere, {0, 9}, true).verdict.status, Status::Delay)
      << "which is not delegated";
  int more = 0;
  for (std::string owner = "x"; world.files.open(args, holder.life).verdict.granted();
       args.open_owner = bytes_of(owner += "x"))
    ++more;
  EXPECT_GT(more, 0);
  EXPECT_LE(world.files.states(), 2 * limits.states) << "nor is that without bounds";
}

TEST(Nfs4DelegationLimits, keep_no_client_from_reclaiming_one_that_it_gives_back_at_once) {
  StateLimits limits;
  limits.delegations = 2;
  World world(2, {}, limits);
  world.grace->begin(world.now + std::chrono::hours(1), true);
  const auto client = world.fresh_client("holder");
  client.life->may_reclaim = true;
  DelegateArgs args{World::file(1), DelegationType::Read, {}};
  args.reclaim = true;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    args.file = World::file(i);
    const StateidResult made = world.files.delegate(args, client.life);
    EXPECT_EQ(made.status, Status::Ok) << i;
    EXPECT_EQ(made.limit, i <= 2 ? Limit::None : Limit::All) << i;
  }
}

TEST_F(Nfs4StateDelegations, are_no_lock_stateids) {
  const Stateid stateid = delegate(a, DelegationType::Write).stateid;
  LockArgs args{file, {0, 9}, true, false, false, stateid, bytes_of("owner")};
  EXPECT_EQ(world.files.lock(args, a.life).verdict.status, Status::BadStateid);
  args.new_lock_owner = true;
  EXPECT_EQ(world.files.lock(args, a.life).verdict.status, Status::BadStateid);
  EXPECT_EQ(world.files.unlock(file, stateid, {0, 9}, *a.life).status, Status::BadStateid);
  EXPECT_EQ(world.files.close(file, stateid, *a.life).status, Status::BadStateid);
  EXPECT_EQ(world.files.open_downgrade(file, stateid, kReads, 0, *a.life).status,
            Status::BadStateid);
}

TEST_F(Nfs4StateDelegations, are_recalled_by_what_others_want_to_lock) {
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  EXPECT_TRUE(world.files.range_conflict(file, {0, 9}, false).verdict.granted());
  EXPECT_EQ(world.files.range_conflict(file, {0, 9}, true).verdict.kind, VerdictKind::Recall);
  EXPECT_EQ(recalls.size(), 1u);
  EXPECT_EQ(world.files.owner_of(stateid), "") << "nobody's open or lock";
}

// A holder of something, somewhere, that waits for more.
class Others final : public OutsideLocks {
 public:
  bool any() const override { return true; }
  bool waiting() const override { return true; }
  void lock() override {}
  void unlock() override {}
  std::optional<ConflictingLock> conflict(const FileKey& file, const Range& range,
                                          bool exclusive) const override {
    if (file != locked || !exclusive) return std::nullopt;
    return ConflictingLock{range, false, 0, {}};
  }
  bool share_conflict(const FileKey&, std::uint32_t, std::uint32_t) const override { return false; }
  bool concerns(const FileKey& file) const override { return file == locked; }
  void freed(const FileKey*) override { ++times_freed; }
  int times_freed = 0;
  FileKey locked = World::file(99);  // by a client that reads
};

TEST_F(Nfs4StateDelegations, are_not_given_of_what_others_have_locked_and_these_hear_of_returns) {
  const Stateid stateid = delegate(a, DelegationType::Read).stateid;
  const Stateid another =
      world.files.delegate({World::file(2), DelegationType::Read, {}}, a.life).stateid;
  Others others;
  world.files.share_with(&others);
  EXPECT_EQ(delegate(b, DelegationType::Read).status, Status::Ok) << "they locked another file";
  others.locked = World::file(3);
  EXPECT_EQ(world.files.delegate({World::file(3), DelegationType::Read, {}}, b.life).status,
            Status::Denied);
  world.files.return_delegation(file, stateid, *a.life);
  EXPECT_EQ(others.times_freed, 1);
  world.files.revoke_delegation(another);
  EXPECT_EQ(others.times_freed, 2);
  world.files.stop_sharing_with(others);
  EXPECT_EQ(world.files.delegate({World::file(3), DelegationType::Read, {}}, b.life).status,
            Status::Ok);
}

TEST_F(Nfs4StateDelegations, conflict_when_reclaimed_with_what_others_have_of_the_file) {
  const auto reclaim = [&](const testing::Client& client, DelegationType type) {
    return world.files.delegate({file, type, {}, 0, true}, client.life);
  };
  world.grace->begin(world.now + std::chrono::hours(1), true);
  Others others;
  world.files.share_with(&others);
  const StateidResult made = reclaim(a, DelegationType::Write);
  ASSERT_EQ(made.status, Status::Ok) << "what others keep of another file is in nobody's way";
  EXPECT_EQ(reclaim(a, DelegationType::Write).stateid, made.stateid);
  EXPECT_EQ(reclaim(a, DelegationType::Read).status, Status::ReclaimConflict);
  EXPECT_EQ(reclaim(b, DelegationType::Read).status, Status::ReclaimConflict);
  world.files.return_delegation(file, made.stateid, *a.life);
  others.locked = file;
  EXPECT_EQ(reclaim(a, DelegationType::Write).status, Status::ReclaimConflict);
  EXPECT_EQ(reclaim(a, DelegationType::Read).status, Status::Ok);
  world.files.stop_sharing_with(others);
}

TEST_F(Nfs4StateDelegations, are_given_up_to_the_limit) {
  Files files({.epoch = 1, .key = {}, .limits = {.delegations = 6}});
  std::vector<Stateid> given;
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto made = files.delegate({World::file(i), DelegationType::Read, {}}, a.life);
    EXPECT_EQ(made.status, i < 3 ? Status::Ok : Status::Delay);
    given.push_back(made.stateid);
  }
  EXPECT_EQ(files.return_delegation(World::file(0), given[0], *a.life), Status::Ok);
  EXPECT_EQ(files.delegate({World::file(9), DelegationType::Read, {}}, a.life).status, Status::Ok);
  files.release(*a.life);
}

// Files against facts: who has what open, and who has which delegation.
class DelegationModel {
 public:
  static constexpr int kClients = 3, kFiles = 2, kSteps = 11;

  explicit DelegationModel(Files& files) : files_(files) {
    files_.on_recall([this](const Recall& recall) {
      Delegation* const one = find(recall.stateid);
      ASSERT_NE(one, nullptr);
      EXPECT_FALSE(one->told) << "a recall is told once";
      one->told = true;
    });
    for (int i = 0; i < kClients; ++i) {
      lives_[at(i)] = std::make_shared<Life>(static_cast<ClientId>(i) + 1);
      lives_[at(i)]->reclaim_complete = true;
    }
  }
  ~DelegationModel() {
    for (const LifePtr& life : lives_) {
      life->phase = Life::Phase::Ended;
      files_.release(*life);
      EXPECT_EQ(life->states.load(), 0u);
      EXPECT_EQ(life->recallable_revoked.load(), 0u);
    }
    EXPECT_EQ(files_.states(), 0u);
    EXPECT_FALSE(files_.guarded());
  }

  void perform(int step, int client, int file) {
    switch (step) {
      case 0:
        return open(client, file, kReads);
      case 1:
        return open(client, file, kReadsAndWrites);
      case 2:
        return close(client, file);
      case 3:
        return delegate(client, file, DelegationType::Read);
      case 4:
        return delegate(client, file, DelegationType::Write);
      case 5:
        return give_back(client, file);
      case 6:
        return touch(client, file);
      case 7:
        return change(client, file);
      case 8:
        return change_ends(file);
      case 9:
        return open(client, file, kReads, kWrites);
      default:
        return revoke_or_free(client, file);
    }
  }

 private:
  struct Open {
    int client = 0, file = 0;
    std::uint32_t access = 0, deny = 0;
    Stateid stateid;
  };
  struct Delegation {
    int client = 0, file = 0;
    DelegationType type = DelegationType::Read;
    Stateid stateid;
    bool told = false, revoked = false;
  };
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const LifePtr& life(int client) { return lives_[at(client)]; }
  static FileKey key(int file) { return World::file(static_cast<std::uint64_t>(file)); }

  Delegation* find(const Stateid& stateid) {
    const auto found = std::find_if(delegations_.begin(), delegations_.end(),
                                    [&](const auto& one) { return one.stateid == stateid; });
    return found == delegations_.end() ? nullptr : &*found;
  }
  Delegation* find(int client, int file, bool revoked) {
    for (Delegation& one : delegations_)
      if (one.client == client && one.file == file && one.revoked == revoked) return &one;
    return nullptr;
  }
  Open* find_open(int client, int file) {
    for (Open& open : opens_)
      if (open.client == client && open.file == file) return &open;
    return nullptr;
  }
  // Whether an open is in the way of such access and denial; those of holders of a delegation are
  // not, if they are told, for a client that is none of them.
  bool in_the_way(int client, int file, std::uint32_t access, std::uint32_t deny) {
    return std::any_of(opens_.begin(), opens_.end(), [&](const Open& open) {
      const bool conflicts = ((open.deny & access) | (open.access & deny)) != 0;
      return open.file == file && conflicts &&
             (open.client == client || find(open.client, file, false) == nullptr);
    });
  }
  // Whether an open of the holder of a delegation is in the way, which is told.
  bool is_asked_for(int file, std::uint32_t access, std::uint32_t deny) {
    bool any = false;
    for (const Open& open : opens_) {
      if (open.file != file || ((open.deny & access) | (open.access & deny)) == 0) continue;
      any = true;
      EXPECT_TRUE(find(open.client, file, false)->told);
    }
    return any;
  }
  // Of access without an open.
  bool is_denied(int file, std::uint32_t access) const {
    return std::any_of(opens_.begin(), opens_.end(), [&](const Open& open) {
      return open.file == file && (open.deny & access) != 0;
    });
  }
  // After a conflict, everybody in the way is told; client -1 is nobody.
  void expect(const Verdict& verdict, int client, int file, bool changes) {
    bool conflict = false;
    for (const Delegation& one : delegations_) {
      if (one.revoked || one.client == client || one.file != file) continue;
      if (!changes && one.type == DelegationType::Read) continue;
      conflict = true;
      EXPECT_TRUE(one.told);
    }
    EXPECT_EQ(verdict.kind, conflict ? VerdictKind::Recall : VerdictKind::Granted);
  }

  void open(int client, int file, std::uint32_t access, std::uint32_t deny = 0) {
    const OpenResult result =
        files_.open({key(file), bytes_of("owner"), access, deny, false}, life(client));
    if (in_the_way(client, file, access, deny)) {
      EXPECT_EQ(result.verdict.status, Status::ShareDenied);
      return;
    }
    if (is_asked_for(file, access, deny)) {
      EXPECT_EQ(result.verdict.kind, VerdictKind::Recall);
      return;
    }
    expect(result.verdict, client, file, (access & kWrites) != 0);
    if (!result.verdict.granted()) return;
    if (Open* const known = find_open(client, file)) {
      known->access |= access;
      known->deny |= deny;
      known->stateid = result.stateid;
    } else {
      opens_.push_back({client, file, access, deny, result.stateid});
    }
  }
  void close(int client, int file) {
    Open* const open = find_open(client, file);
    if (open == nullptr) return;
    EXPECT_EQ(files_.close(key(file), open->stateid, *life(client)).status, Status::Ok);
    opens_.erase(opens_.begin() + (open - opens_.data()));
  }
  void delegate(int client, int file, DelegationType type) {
    bool may = find(client, file, false) == nullptr;
    const bool writes = type == DelegationType::Write;
    for (const Open& open : opens_)
      if (open.file == file && open.client != client && (writes || (open.access & kWrites) != 0))
        may = false;
    for (const Delegation& one : delegations_)
      if (!one.revoked && one.file == file &&
          (writes || one.type == DelegationType::Write || one.told))
        may = false;
    // RFC 8881 10.4.4: what is being done would be done under it.
    may = may && changes_[at(file)].empty();
    const StateidResult made = files_.delegate({key(file), type, {}}, life(client));
    EXPECT_EQ(made.status, may ? Status::Ok : Status::Denied);
    if (made.status == Status::Ok) delegations_.push_back({client, file, type, made.stateid});
  }
  void give_back(int client, int file) {
    Delegation* const one = find(client, file, false);
    if (one == nullptr) return;
    const int other = (client + 1) % kClients;
    EXPECT_EQ(files_.return_delegation(key(file), one->stateid, *life(other)), Status::BadStateid);
    EXPECT_EQ(files_.return_delegation(key(file), one->stateid, *life(client)), Status::Ok);
    delegations_.erase(delegations_.begin() + (one - delegations_.data()));
  }
  void touch(int client, int file) {
    for (const Touch how :
         {Touch::Read, Touch::Look, Touch::Attributes, Touch::Unlink, Touch::Size}) {
      const bool changes = how != Touch::Read && how != Touch::Look;
      const Permit permit = access(file, how, life(client).get());
      if (how == Touch::Size && is_denied(file, kWrites))
        EXPECT_EQ(permit.status, Status::Locked);
      else
        expect(permit, client, file, changes);
    }
    expect(access(file, Touch::Read, nullptr), -1, file, false);
    if (client == 0 && !is_denied(file, kWrites))
      expect(access(file, Touch::Write, nullptr), -1, file, true);
  }
  // By a caller whom the store lets do it.
  Permit access(int file, Touch how, const Life* by) {
    Permit permit = files_.access(key(file), how, by);
    if (permit.kind == VerdictKind::Recall) files_.recall(key(file), how, by);
    return permit;
  }
  // Of attributes, which conflict with all delegations.
  void change(int client, int file) {
    Permit permit = access(file, Touch::Attributes, life(client).get());
    expect(permit, client, file, true);
    if (permit.granted()) changes_[at(file)].push_back(std::move(permit.change));
  }
  void change_ends(int file) {
    if (!changes_[at(file)].empty()) changes_[at(file)].pop_back();
  }
  void revoke_or_free(int client, int file) {
    if (Delegation* const revoked = find(client, file, true)) {
      EXPECT_EQ(files_.free_stateid(revoked->stateid, *life(client)), Status::Ok);
      delegations_.erase(delegations_.begin() + (revoked - delegations_.data()));
    } else if (Delegation* const one = find(client, file, false)) {
      files_.revoke_delegation(one->stateid);
      one->revoked = true;
    }
  }

  Files& files_;
  std::array<LifePtr, kClients> lives_;
  std::array<std::vector<FileChange>, kFiles> changes_;
  std::vector<Open> opens_;
  std::vector<Delegation> delegations_;
};

TEST(Nfs4DelegationModel, agrees_on_all_interleavings_of_two_clients) {
  constexpr int kChoices = 2 * DelegationModel::kSteps;
  const int depth = testing::depth_or(4);
  std::uint64_t sequences = 1;
  Files files({.epoch = 1, .key = {}, .limits = {}});
  for (int i = 1; i < depth; ++i) sequences *= kChoices;
  for (int first = 0; first < DelegationModel::kSteps; ++first)
    for (std::uint64_t rest = 0; rest < sequences && !HasFailure(); ++rest) {
      DelegationModel model(files);
      model.perform(first, 0, 0);
      std::uint64_t left = rest;
      for (int at = 1; at < depth; ++at, left /= kChoices) {
        const int choice = static_cast<int>(left % kChoices);
        model.perform(choice % DelegationModel::kSteps, choice / DelegationModel::kSteps, 0);
      }
    }
}

TEST(Nfs4DelegationModel, agrees_after_many_random_steps) {
  std::mt19937 random(10);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  const int steps = testing::random_steps();
  Files files({.epoch = 1, .key = {}, .limits = {}});
  DelegationModel model(files);
  for (int i = 0; i < steps && !HasFailure(); ++i)
    model.perform(below(DelegationModel::kSteps), below(DelegationModel::kClients),
                  below(DelegationModel::kFiles));
}

}  // namespace
}  // namespace stag::nfs::state
