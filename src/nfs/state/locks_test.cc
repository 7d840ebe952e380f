// The sentences of RFC 8881 9.1 to 9.5, 18.10 to 18.12 and 18.38 on byte-range locks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

constexpr bool kExclusive = true, kShared = false;

class Nfs4Locks : public ::testing::Test {
 protected:
  LockResult lock(const testing::Client& client, const Stateid& open, Range range, bool exclusive,
                  std::string_view owner = "locker") {
    return world.lock(client, 1, open, range, exclusive, owner);
  }
  LockResult test(const testing::Client& client, Range range, bool exclusive,
                  std::string_view owner = "locker") {
    return world.files.test_lock(file, range, exclusive, bytes_of(owner), *client.life);
  }
  StateidResult unlock(const testing::Client& client, const Stateid& stateid, Range range) {
    return world.files.unlock(file, stateid, range, *client.life);
  }
  bool is_free(Range range) { return test(b, range, kExclusive, "nobody").verdict.granted(); }

  World world;
  const testing::Client a = world.client("a"), b = world.client("b");
  const FileKey file = World::file(1);
  const Stateid open_a = world.open(a, 1).stateid, open_b = world.open(b, 1).stateid;
};

TEST_F(Nfs4Locks, ranges_are_INVAL_when_empty_or_beyond_64_bits) {
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  EXPECT_FALSE(byte_range(0, 0));
  EXPECT_FALSE(byte_range(2, kMax - 1));
  EXPECT_FALSE(byte_range(kMax, 1));
  EXPECT_EQ(*byte_range(1, kMax - 1), (Range{1, kMax - 1}));
  EXPECT_EQ(*byte_range(7, kMax), (Range{7, Range::kEnd}));
  EXPECT_EQ(*byte_range(kMax, kMax), (Range{kMax, Range::kEnd}));
  EXPECT_EQ(*byte_range(7, 3), (Range{7, 9}));
  EXPECT_EQ(length_of({7, 9}), 3u);
  EXPECT_EQ(length_of({7, Range::kEnd}), kMax);
}

TEST_F(Nfs4Locks, the_first_one_of_an_owner_makes_a_stateid_that_later_ones_count_on) {
  const LockResult first = lock(a, open_a, {0, 9}, kExclusive);
  EXPECT_EQ(first.stateid.seqid, 1u);
  EXPECT_NE(first.stateid.other, open_a.other);
  const LockResult second = world.lock_more(a, 1, first.stateid, {20, 29}, kExclusive);
  EXPECT_EQ(second.stateid.other, first.stateid.other);
  EXPECT_EQ(second.stateid.seqid, 2u);
  EXPECT_EQ(world.lock_more(a, 1, first.stateid, {30, 39}, kExclusive).verdict.status,
            Status::OldStateid);
  EXPECT_EQ(unlock(a, second.stateid, {0, 9}).stateid.seqid, 3u);
}

TEST_F(Nfs4Locks, a_client_that_lost_the_stateid_finds_it_through_the_open) {
  const Stateid first = lock(a, open_a, {0, 9}, kExclusive).stateid;
  const Stateid again = lock(a, open_a, {20, 29}, kExclusive).stateid;
  EXPECT_EQ(again.other, first.other);
  EXPECT_EQ(again.seqid, 2u);
}

TEST_F(Nfs4Locks, exclusive_keeps_everybody_out_and_shared_only_exclusive) {
  ASSERT_TRUE(lock(a, open_a, {0, 9}, kShared).verdict.granted());
  EXPECT_TRUE(lock(b, open_b, {5, 15}, kShared).verdict.granted());
  EXPECT_EQ(lock(b, open_b, {5, 15}, kExclusive).verdict.status, Status::Denied);
  ASSERT_TRUE(lock(a, open_a, {20, 29}, kExclusive).verdict.granted());
  EXPECT_EQ(lock(b, open_b, {29, 30}, kShared).verdict.status, Status::Denied);
  EXPECT_TRUE(lock(b, open_b, {30, 30}, kExclusive).verdict.granted());
}

TEST_F(Nfs4Locks, lock_owners_of_one_client_are_strangers) {
  ASSERT_TRUE(lock(a, open_a, {0, 9}, kExclusive, "one").verdict.granted());
  EXPECT_EQ(lock(a, open_a, {0, 9}, kShared, "two").verdict.status, Status::Denied);
  EXPECT_EQ(lock(b, open_b, {0, 9}, kShared, "one").verdict.status, Status::Denied)
      << "the same bytes of another client are another owner";
}

TEST_F(Nfs4Locks, DENIED_tells_who_holds_what) {
  ASSERT_TRUE(lock(a, open_a, {10, 19}, kExclusive, "holder").verdict.granted());
  for (const LockResult& denied :
       {lock(b, open_b, {0, Range::kEnd}, kShared), test(b, {0, Range::kEnd}, kShared)}) {
    EXPECT_EQ(denied.verdict.status, Status::Denied);
    ASSERT_TRUE(denied.conflict.has_value());
    EXPECT_EQ(denied.conflict->range, (Range{10, 19}));
    EXPECT_TRUE(denied.conflict->exclusive);
    EXPECT_EQ(denied.conflict->clientid, a.id);
    EXPECT_EQ(denied.conflict->lock_owner, "holder");
  }
}

TEST_F(Nfs4Locks, LOCKT_ignores_what_the_owner_itself_holds) {
  ASSERT_TRUE(lock(a, open_a, {0, 9}, kExclusive).verdict.granted());
  EXPECT_TRUE(test(a, {0, 9}, kExclusive).verdict.granted());
  EXPECT_EQ(test(a, {0, 9}, kExclusive, "other").verdict.status, Status::Denied);
}

TEST_F(Nfs4Locks, upgrade_and_downgrade_in_place) {
  const Stateid stateid = lock(a, open_a, {0, 99}, kShared).stateid;
  ASSERT_TRUE(world.lock_more(a, 1, {0, stateid.other}, {10, 19}, kExclusive).verdict.granted());
  EXPECT_TRUE(test(b, {0, 9}, kShared).verdict.granted());
  EXPECT_FALSE(test(b, {10, 19}, kShared).verdict.granted());
  EXPECT_TRUE(test(b, {20, 99}, kShared).verdict.granted());
  ASSERT_TRUE(world.lock_more(a, 1, {0, stateid.other}, {10, 19}, kShared).verdict.granted());
  EXPECT_TRUE(test(b, {0, 99}, kShared).verdict.granted());
  EXPECT_EQ(
      world.files.list(a.id, 10)[0].ranges.size() + world.files.list(a.id, 10)[1].ranges.size(), 1u)
      << "merged again";
}

TEST_F(Nfs4Locks, an_upgrade_that_another_reader_prevents_changes_nothing) {
  const Stateid stateid = lock(a, open_a, {0, 9}, kShared).stateid;
  ASSERT_TRUE(lock(b, open_b, {5, 5}, kShared).verdict.granted());
  EXPECT_EQ(world.lock_more(a, 1, stateid, {0, 9}, kExclusive).verdict.status, Status::Denied);
  EXPECT_FALSE(is_free({0, 0}));
  EXPECT_TRUE(test(b, {0, 9}, kShared).verdict.granted());
  EXPECT_EQ(unlock(a, stateid, {0, 9}).stateid.seqid, 2u) << "the refusal did not count";
}

TEST_F(Nfs4Locks, unlocking_a_part_splits) {
  const Stateid stateid = lock(a, open_a, {0, 29}, kExclusive).stateid;
  ASSERT_EQ(unlock(a, stateid, {10, 19}).status, Status::Ok);
  EXPECT_FALSE(is_free({0, 9}));
  EXPECT_TRUE(is_free({10, 19}));
  EXPECT_FALSE(is_free({20, 29}));
  EXPECT_EQ(unlock(a, {0, stateid.other}, {50, 60}).status, Status::Ok)
      << "nothing is locked there";
}

TEST_F(Nfs4Locks, a_lock_to_the_end_of_the_file_covers_all_that_follows) {
  ASSERT_TRUE(lock(a, open_a, *byte_range(100, ~std::uint64_t{0}), kExclusive).verdict.granted());
  EXPECT_FALSE(is_free({~std::uint64_t{0}, Range::kEnd}));
  EXPECT_TRUE(is_free({0, 99}));
}

TEST_F(Nfs4Locks, the_open_mode_limits_the_type) {
  const Stateid reader = world.open(a, 2, kShareRead).stateid;
  EXPECT_EQ(world.lock(a, 2, reader, {0, 9}, kExclusive).verdict.status, Status::Openmode);
  EXPECT_TRUE(world.lock(a, 2, reader, {0, 9}, kShared).verdict.granted());
  const Stateid writer = world.open(a, 3, kShareWrite).stateid;
  EXPECT_EQ(world.lock(a, 3, writer, {0, 9}, kShared).verdict.status, Status::Openmode);
}

TEST_F(Nfs4Locks, stateids_of_another_type_are_BAD_STATEID) {
  const Stateid stateid = lock(a, open_a, {0, 9}, kExclusive).stateid;
  EXPECT_EQ(lock(a, stateid, {20, 29}, kShared, "x").verdict.status, Status::BadStateid);
  EXPECT_EQ(world.lock_more(a, 1, open_a, {20, 29}, kShared).verdict.status, Status::BadStateid);
  EXPECT_EQ(lock(a, kAnonymousStateid, {20, 29}, kShared).verdict.status, Status::BadStateid);
  EXPECT_EQ(unlock(a, open_a, {0, 9}).status, Status::BadStateid);
  EXPECT_EQ(world.files.close(file, stateid, *a.life).status, Status::BadStateid);
  EXPECT_EQ(world.files.open_downgrade(file, stateid, 1, 0, *a.life).status, Status::BadStateid);
  EXPECT_EQ(unlock(b, stateid, {0, 9}).status, Status::BadStateid) << "another client's";
}

TEST_F(Nfs4Locks, READ_and_WRITE_with_a_lock_stateid_have_the_mode_of_its_open) {
  const Stateid reader = world.open(a, 2, kShareRead).stateid;
  const Stateid stateid = world.lock(a, 2, reader, {0, 9}, kShared).stateid;
  const FileKey second = World::file(2);
  EXPECT_TRUE(world.files.check(second, stateid, *a.life, Touch::Read).granted());
  EXPECT_EQ(world.files.check(second, stateid, *a.life, Touch::Write).status, Status::Openmode);
}

TEST_F(Nfs4Locks, are_advisory_for_READ_and_WRITE) {
  ASSERT_TRUE(lock(a, open_a, {0, 9}, kExclusive).verdict.granted());
  EXPECT_TRUE(world.files.check(file, open_b, *b.life, Touch::Write).granted());
}

TEST_F(Nfs4Locks, CLOSE_releases_them) {
  const Stateid stateid = lock(a, open_a, {0, 9}, kExclusive).stateid;
  EXPECT_EQ(world.files.close(file, open_a, *a.life).status, Status::Ok);
  EXPECT_TRUE(is_free({0, Range::kEnd}));
  EXPECT_EQ(world.files.test_stateid(stateid, *a.life), Status::BadStateid);
  EXPECT_EQ(world.files.states(), 1u) << "the open of the other client";
}

TEST_F(Nfs4Locks, a_lock_stateid_outlives_its_last_lock_until_it_is_freed) {
  const Stateid stateid = lock(a, open_a, {0, 9}, kExclusive).stateid;
  EXPECT_EQ(world.files.free_stateid(stateid, *a.life), Status::LocksHeld);
  const Stateid empty = unlock(a, stateid, {0, 9}).stateid;
  EXPECT_EQ(world.files.test_stateid(empty, *a.life), Status::Ok);
  EXPECT_EQ(world.files.free_stateid(stateid, *a.life), Status::OldStateid);
  EXPECT_EQ(world.files.free_stateid(empty, *a.life), Status::Ok);
  EXPECT_EQ(world.files.test_stateid(empty, *a.life), Status::BadStateid);
  EXPECT_EQ(lock(a, open_a, {0, 9}, kExclusive).stateid.seqid, 1u) << "a new one";
}

TEST_F(Nfs4Locks, bytes_reflect_the_last_LOCK_or_LOCKU_of_the_owner_through_whatever_open) {
  const Stateid second = world.open(a, 1, kShareBoth, 0, "second").stateid;
  const Stateid through_first = lock(a, open_a, {0, 9}, kExclusive).stateid;
  const Stateid through_second = lock(a, second, {5, 14}, kShared).stateid;
  EXPECT_NE(through_first.other, through_second.other);
  EXPECT_TRUE(test(b, {5, 14}, kShared).verdict.granted());
  EXPECT_FALSE(test(b, {0, 4}, kShared).verdict.granted());
  // The bytes went over to the second open; the first stateid did not count on.
  EXPECT_EQ(world.files.test_stateid(through_first, *a.life), Status::Ok);
  world.files.close(file, open_a, *a.life);
  EXPECT_TRUE(is_free({0, 4}));
  EXPECT_FALSE(is_free({5, 14}));
  EXPECT_EQ(unlock(a, through_second, {0, 20}).status, Status::Ok);
  EXPECT_TRUE(is_free({0, 20}));
}

TEST_F(Nfs4Locks, LOCKU_reaches_what_was_locked_through_another_open) {
  const Stateid second = world.open(a, 1, kShareBoth, 0, "second").stateid;
  lock(a, open_a, {0, 9}, kExclusive);
  const Stateid through_second = lock(a, second, {20, 29}, kExclusive).stateid;
  EXPECT_EQ(unlock(a, through_second, {0, 9}).status, Status::Ok);
  EXPECT_TRUE(is_free({0, 9}));
}

TEST_F(Nfs4Locks, a_conflict_names_a_lapsed_client_and_ignores_an_ended_one) {
  ASSERT_TRUE(lock(a, open_a, {0, 9}, kExclusive).verdict.granted());
  world.now += World::lease + std::chrono::seconds(1);
  world.run(b, 0, 1);
  world.clients.expire(world.now);
  const LockResult lapsed = lock(b, open_b, {0, 9}, kExclusive);
  EXPECT_EQ(lapsed.verdict.kind, Verdict::Kind::Lapsed);
  EXPECT_EQ(lapsed.verdict.who, a.id);
  EXPECT_EQ(test(b, {0, 9}, kShared).verdict.kind, Verdict::Kind::Lapsed);
  ASSERT_NE(world.clients.end(a.id, true), nullptr);
  EXPECT_TRUE(lock(b, open_b, {0, 9}, kExclusive).verdict.granted());
}

TEST_F(Nfs4Locks, are_granted_in_grace_to_reclaims_only) {
  const testing::Client fresh = world.fresh_client("fresh");
  fresh.life->may_reclaim = true;
  world.grace->begin(world.now + std::chrono::hours(1), true);
  const Stateid open =
      world.files.open({file, bytes_of("o"), kShareBoth, 0, true}, fresh.life).stateid;
  const auto reclaim = [&](Range range, bool claimed) {
    return world.files.lock({file, range, true, claimed, true, open, bytes_of("l")}, fresh.life)
        .verdict;
  };
  EXPECT_EQ(lock(a, open_a, {0, 9}, kExclusive).verdict.status, Status::Grace);
  EXPECT_EQ(test(a, {0, 9}, kExclusive).verdict.status, Status::Grace);
  EXPECT_EQ(reclaim({0, 9}, false).status, Status::Grace);
  EXPECT_TRUE(reclaim({0, 9}, true).granted());
  EXPECT_FALSE(world.grace->active(world.now + std::chrono::hours(1)));
  EXPECT_EQ(reclaim({20, 29}, true).status, Status::NoGrace);
}

TEST_F(Nfs4Locks, a_reclaim_that_conflicts_is_RECLAIM_CONFLICT) {
  ASSERT_TRUE(lock(a, open_a, {0, 9}, kExclusive).verdict.granted());
  const testing::Client fresh = world.fresh_client("fresh");
  fresh.life->may_reclaim = true;
  world.grace->begin(world.now + std::chrono::hours(1), true);
  const Stateid open =
      world.files.open({file, bytes_of("o"), kShareBoth, 0, true}, fresh.life).stateid;
  const LockArgs args{file, {5, 5}, true, true, true, open, bytes_of("l")};
  EXPECT_EQ(world.files.lock(args, fresh.life).verdict.status, Status::ReclaimConflict);
}

TEST_F(Nfs4Locks, ranges_are_counted_and_splitting_beyond_twice_the_limit_fails_for_good) {
  StateLimits limits;
  limits.states_of_client = 4;
  World small(1, {}, limits);
  const auto client = small.client("a");
  const Stateid open = small.open(client, 1).stateid;
  const Stateid stateid = {0, small.lock(client, 1, open, {0, 99}, true).stateid.other};
  EXPECT_EQ(client.life->states.load(), 3u);
  for (std::uint64_t at = 10; at <= 60; at += 10) {
    const StateidResult result = small.files.unlock(file, stateid, {at, at}, *client.life);
    EXPECT_EQ(result.status, at <= 50 ? Status::Ok : Status::Serverfault);
    EXPECT_EQ(result.limit, at <= 50 ? Limit::None : Limit::Client);
    EXPECT_EQ(small.lock_more(client, 1, stateid, {200, 200}, true).verdict.status, Status::Delay);
  }
  EXPECT_EQ(client.life->states.load(), 8u);
  EXPECT_EQ(small.files.unlock(file, stateid, {0, 99}, *client.life).status, Status::Ok);
  EXPECT_EQ(client.life->states.load(), 2u);
}

TEST(Nfs4StateLocks, are_unlocked_in_part_whatever_others_have_taken) {
  StateLimits limits;
  limits.states = 16;
  limits.states_of_address = 8;
  World world(1, {}, limits);
  const testing::Client client = world.client("here", "192.0.2.1");
  const testing::Client other = world.client("there", "192.0.2.2");
  const FileKey file = World::file(100);
  const Stateid open = world.open(client, 100).stateid;
  const Stateid lock = {0, world.lock(client, 100, open, {0, 99}, true).stateid.other};
  for (std::uint64_t i = 0; world.open(other, i).verdict.granted(); ++i) continue;
  for (std::uint64_t i = 0; world.open(client, i).verdict.granted(); ++i) continue;
  EXPECT_EQ(world.files.unlock(file, lock, {50, 50}, *client.life).status, Status::Ok);
  EXPECT_EQ(world.lock_more(client, 100, lock, {200, 200}, true).verdict.status, Status::Delay);
  Status status = Status::Ok;
  for (std::uint64_t at = 2; at < 50 && status == Status::Ok; at += 2)
    status = world.files.unlock(file, lock, {at, at}, *client.life).status;
  EXPECT_EQ(status, Status::Serverfault) << "nor is that without bounds";
  EXPECT_LE(world.files.states(), 2 * limits.states);
}

// Decision 0085.
TEST(Nfs4StateLocks, that_are_split_leave_others_something_to_open) {
  StateLimits limits;
  limits.states = 1024;
  limits.states_of_address = 512;
  limits.states_of_client = 128;
  World world(1, {}, limits);
  std::vector<testing::Client> clients;
  std::vector<Stateid> locks;
  for (std::uint64_t each = 0; each < 8; ++each) {
    clients.push_back(world.client("here" + std::to_string(each), "192.0.2.1"));
    const Stateid open = world.open(clients[each], each).stateid;
    locks.push_back({0, world.lock(clients[each], each, open, {0, 9999}, true).stateid.other});
  }
  for (std::uint64_t each = 0; each < 8; ++each) {
    Status status = Status::Ok;
    for (std::uint64_t at = 2; at < 9999 && status == Status::Ok; at += 2)
      status =
          world.files.unlock(World::file(each), locks[each], {at, at}, *clients[each].life).status;
  }
  EXPECT_GE(world.files.states(), limits.states);
  const testing::Client other = world.client("there", "192.0.2.2");
  EXPECT_TRUE(world.open(other, 100).verdict.granted());
}

TEST(Nfs4StateLocks, are_of_clients_at_some_address) {
  World world;
  const testing::Client here = world.client("here", "192.0.2.1");
  const testing::Client there = world.client("there", "192.0.2.2");
  const FileKey file = World::file(1);
  EXPECT_EQ(world.files.locker_at(file, "192.0.2.1"), std::nullopt);
  const Stateid open = world.open(here, 1).stateid;
  EXPECT_EQ(world.files.locker_at(file, "192.0.2.1"), std::nullopt) << "an open is no lock";
  const Stateid lock = world.lock(here, 1, open, {0, 9}, true).stateid;
  ASSERT_TRUE(
      world.lock(there, 1, world.open(there, 1).stateid, {20, 29}, false).verdict.granted());
  EXPECT_EQ(world.files.locker_at(file, "192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(world.files.locker_at(file, "192.0.2.2"), "192.0.2.2");
  EXPECT_NE(world.files.locker_at(file, "192.0.2.3"), std::nullopt);
  ASSERT_EQ(world.files.unlock(file, lock, {0, 9}, *here.life).status, Status::Ok);
  EXPECT_EQ(world.files.locker_at(file, "192.0.2.1"), "192.0.2.2");
}

}  // namespace
}  // namespace stag::nfs::state
