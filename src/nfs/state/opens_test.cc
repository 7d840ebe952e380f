// The sentences of RFC 8881 8.2 (stateids), 9.7 to 9.10 (share reservations), 18.2, 18.16, 18.18
// and 8.4.2 (reclaim) on opens.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

constexpr std::uint32_t kNone = 0, kRead = kShareRead, kWrite = kShareWrite, kBoth = kShareBoth;

// Two clients and a file that they both know.
class Nfs4Opens : public ::testing::Test {
 protected:
  OpenResult open(const testing::Client& client, std::uint32_t access, std::uint32_t deny = 0,
                  std::string_view owner = "owner") {
    return world.open(client, 1, access, deny, owner);
  }
  Status check(const testing::Client& client, const Stateid& stateid, Touch touch) {
    const Verdict verdict = world.files.check(file, stateid, *client.life, touch);
    return verdict.granted() ? Status::Ok : verdict.status;
  }
  void lapse(const testing::Client& client) {
    world.now += World::lease + std::chrono::seconds(1);
    world.run(client, 63, 1);  // any other slot than that of the test
    world.clients.expire(world.now);
  }

  World world;
  const testing::Client a = world.client("a"), b = world.client("b");
  const FileKey file = World::file(1);
};

TEST_F(Nfs4Opens, conflict_exactly_as_RFC_8881_9_7_writes_it) {
  for (std::uint32_t access = 1; access <= 3; ++access)
    for (std::uint32_t deny = 0; deny <= 3; ++deny)
      for (std::uint32_t access2 = 1; access2 <= 3; ++access2)
        for (std::uint32_t deny2 = 0; deny2 <= 3; ++deny2) {
          const OpenResult first = open(a, access, deny);
          ASSERT_TRUE(first.verdict.granted());
          const OpenResult second = open(b, access2, deny2);
          const bool conflict = (access2 & deny) != 0 || (deny2 & access) != 0;
          EXPECT_EQ(second.verdict.granted(), !conflict);
          EXPECT_EQ(second.verdict.status, conflict ? Status::ShareDenied : Status::Ok);
          if (!conflict) world.files.close(file, second.stateid, *b.life);
          world.files.close(file, first.stateid, *a.life);
        }
  EXPECT_EQ(world.files.states(), 0u);
}

TEST_F(Nfs4Opens, are_denied_to_truncate_where_writing_is_denied) {
  EXPECT_TRUE(open(a, kBoth, kWrite).verdict.granted());
  OpenArgs args{file, bytes_of("owner"), kRead, kNone, false};
  EXPECT_TRUE(world.files.open(args, b.life).verdict.granted());
  args.truncates = true;
  EXPECT_EQ(world.files.open(args, b.life).verdict.status, Status::ShareDenied);
}

TEST_F(Nfs4Opens, an_owner_is_denied_what_it_denied_itself) {
  EXPECT_TRUE(open(a, kRead, kWrite).verdict.granted());
  EXPECT_EQ(open(a, kWrite).verdict.status, Status::ShareDenied);
  EXPECT_EQ(open(a, kWrite, kNone, "another").verdict.status, Status::ShareDenied);
}

TEST_F(Nfs4Opens, other_values_than_those_of_the_RFC_are_INVAL) {
  for (const std::uint32_t access : {0u, 4u, 7u, ~0u})
    EXPECT_EQ(open(a, access).verdict.status, Status::Inval);
  EXPECT_EQ(open(a, kRead, 4).verdict.status, Status::Inval);
}

TEST_F(Nfs4Opens, a_new_stateid_has_seqid_1_and_is_no_special_one) {
  const OpenResult opened = open(a, kRead);
  EXPECT_EQ(opened.stateid.seqid, 1u);
  EXPECT_NE(opened.stateid.other, kAnonymousStateid.other);
  EXPECT_NE(opened.stateid.other, kBypassStateid.other);
}

TEST_F(Nfs4Opens, the_same_owner_upgrades_even_when_nothing_changes) {
  const OpenResult first = open(a, kRead);
  const OpenResult second = open(a, kWrite);
  EXPECT_EQ(second.stateid.other, first.stateid.other);
  EXPECT_EQ(second.stateid.seqid, 2u);
  EXPECT_EQ(open(a, kRead).stateid.seqid, 3u);
  EXPECT_EQ(check(a, {0, first.stateid.other}, Touch::Write), Status::Ok);
  EXPECT_EQ(world.files.states(), 1u);
  EXPECT_EQ(world.files.close(file, {0, first.stateid.other}, *a.life).status, Status::Ok);
  EXPECT_EQ(world.files.states(), 0u) << "one CLOSE ends them all (RFC 8881 9.9)";
}

TEST_F(Nfs4Opens, owners_files_and_clients_are_told_apart) {
  const Stateid stateid = open(a, kRead).stateid;
  EXPECT_NE(open(a, kRead, kNone, "another").stateid.other, stateid.other);
  EXPECT_NE(open(b, kRead).stateid.other, stateid.other);
  EXPECT_NE(world.open(a, 2).stateid.other, stateid.other);
}

TEST_F(Nfs4Opens, an_older_seqid_is_OLD_STATEID_and_a_newer_one_BAD_STATEID) {
  open(a, kRead);
  Stateid stateid = open(a, kRead).stateid;
  EXPECT_EQ(check(a, stateid, Touch::Read), Status::Ok);
  stateid.seqid = 1;
  EXPECT_EQ(check(a, stateid, Touch::Read), Status::OldStateid);
  EXPECT_EQ(world.files.close(file, stateid, *a.life).status, Status::OldStateid);
  stateid.seqid = 3;
  EXPECT_EQ(check(a, stateid, Touch::Read), Status::BadStateid);
  stateid.seqid = ~0u;
  EXPECT_EQ(check(a, stateid, Touch::Read), Status::OldStateid) << "before the wrap";
  stateid.seqid = 0;
  EXPECT_EQ(check(a, stateid, Touch::Read), Status::Ok);
}

TEST_F(Nfs4Opens, a_stateid_of_another_client_file_epoch_place_or_tag_is_BAD_STATEID) {
  const Stateid stateid = open(a, kRead).stateid;
  EXPECT_EQ(check(b, stateid, Touch::Read), Status::BadStateid);
  EXPECT_EQ(world.files.check(World::file(2), stateid, *a.life, Touch::Read).status,
            Status::BadStateid);
  for (std::size_t i = 0; i < stateid.other.size(); ++i) {
    Stateid wrong = stateid;
    wrong.other[i] ^= std::byte{1};
    EXPECT_EQ(check(a, wrong, Touch::Read), Status::BadStateid) << i;
    EXPECT_EQ(world.files.close(file, wrong, *a.life).status, Status::BadStateid);
    EXPECT_EQ(world.files.free_stateid(wrong, *a.life), Status::BadStateid);
  }
}

TEST_F(Nfs4Opens, a_closed_stateid_is_BAD_STATEID_for_ever) {
  const Stateid closed = open(a, kRead).stateid;
  EXPECT_EQ(world.files.close(file, closed, *a.life).stateid, kInvalidStateid);
  for (int i = 0; i < 3000; ++i) {
    const Stateid next = open(a, kRead).stateid;
    ASSERT_NE(next.other, closed.other);
    ASSERT_EQ(check(a, closed, Touch::Read), Status::BadStateid);
    world.files.close(file, next, *a.life);
  }
}

TEST_F(Nfs4Opens, undefined_special_stateids_are_BAD_STATEID) {
  for (const Stateid& stateid :
       {kInvalidStateid, Stateid{1, {}}, Stateid{2, {}}, Stateid{0, kBypassStateid.other}}) {
    EXPECT_EQ(check(a, stateid, Touch::Read), Status::BadStateid);
    EXPECT_EQ(world.files.test_stateid(stateid, *a.life), Status::BadStateid);
  }
  EXPECT_EQ(world.files.test_stateid(kAnonymousStateid, *a.life), Status::BadStateid);
  EXPECT_EQ(world.files.test_stateid(kBypassStateid, *a.life), Status::BadStateid);
  EXPECT_EQ(world.files.close(file, kAnonymousStateid, *a.life).status, Status::BadStateid);
}

TEST_F(Nfs4Opens, writing_needs_an_open_for_writing) {
  const Stateid reader = open(a, kRead).stateid;
  EXPECT_EQ(check(a, reader, Touch::Write), Status::Openmode);
  EXPECT_EQ(check(a, reader, Touch::Size), Status::Openmode);
  EXPECT_EQ(check(a, reader, Touch::Attributes), Status::Ok);
  EXPECT_EQ(check(a, reader, Touch::Read), Status::Ok);
}

TEST_F(Nfs4Opens, an_open_for_writing_may_read_unless_another_denies_it) {
  const Stateid writer = open(a, kWrite).stateid;
  EXPECT_EQ(check(a, writer, Touch::Read), Status::Ok);
  const OpenResult denying = open(b, kWrite, kRead);
  ASSERT_TRUE(denying.verdict.granted());
  EXPECT_EQ(check(a, writer, Touch::Read), Status::Locked);
  EXPECT_EQ(check(b, denying.stateid, Touch::Read), Status::Ok) << "its own denial";
}

TEST_F(Nfs4Opens, denials_bind_the_anonymous_stateid_and_NFSv3) {
  EXPECT_EQ(check(b, kAnonymousStateid, Touch::Write), Status::Ok);
  const Stateid stateid = open(a, kRead, kWrite).stateid;
  for (const Touch touch : {Touch::Write, Touch::Size}) {
    EXPECT_EQ(check(b, kAnonymousStateid, touch), Status::Locked);
    EXPECT_EQ(check(b, kBypassStateid, touch), Status::Locked);
    EXPECT_EQ(world.files.access(file, touch).status, Status::Locked);
    EXPECT_TRUE(world.files.access(World::file(2), touch).granted());
  }
  EXPECT_EQ(check(b, kAnonymousStateid, Touch::Read), Status::Ok);
  EXPECT_TRUE(world.files.access(file, Touch::Attributes).granted());
  world.files.close(file, stateid, *a.life);
  EXPECT_TRUE(world.files.access(file, Touch::Write).granted());
}

TEST_F(Nfs4Opens, the_READ_bypass_stateid_reads_what_is_denied) {
  open(a, kWrite, kRead);
  EXPECT_EQ(check(b, kAnonymousStateid, Touch::Read), Status::Locked);
  EXPECT_EQ(check(b, kBypassStateid, Touch::Read), Status::Ok);
}

TEST_F(Nfs4Opens, a_downgrade_takes_bits_away_and_counts_the_seqid_on) {
  open(a, kRead, kNone);
  const Stateid both = open(a, kBoth, kNone).stateid;
  const StateidResult reader = world.files.open_downgrade(file, both, kRead, kNone, *a.life);
  EXPECT_EQ(reader.status, Status::Ok);
  EXPECT_EQ(reader.stateid.other, both.other);
  EXPECT_EQ(reader.stateid.seqid, both.seqid + 1);
  EXPECT_EQ(check(a, reader.stateid, Touch::Write), Status::Openmode);
  EXPECT_TRUE(open(b, kRead, kWrite).verdict.granted());
}

TEST_F(Nfs4Opens, a_downgrade_to_what_was_never_opened_is_INVAL) {
  const Stateid both = open(a, kBoth, kBoth).stateid;
  const auto downgrade = [&](std::uint32_t access, std::uint32_t deny) {
    return world.files.open_downgrade(file, {0, both.other}, access, deny, *a.life).status;
  };
  EXPECT_EQ(downgrade(kRead, kBoth), Status::Inval);
  EXPECT_EQ(downgrade(kBoth, kNone), Status::Inval);
  EXPECT_EQ(downgrade(kBoth, kWrite), Status::Inval);
  EXPECT_EQ(downgrade(0, kBoth), Status::Inval);
  EXPECT_EQ(downgrade(kBoth, kBoth), Status::Ok);
}

TEST_F(Nfs4Opens, a_downgrade_goes_to_the_union_of_some_OPENs_in_effect) {
  open(a, kRead);
  const Stateid stateid = {0, open(a, kWrite).stateid.other};
  const auto downgrade = [&](std::uint32_t access) {
    return world.files.open_downgrade(file, stateid, access, kNone, *a.life).status;
  };
  EXPECT_EQ(downgrade(kBoth), Status::Ok);
  EXPECT_EQ(downgrade(kWrite), Status::Ok);
  EXPECT_EQ(downgrade(kRead), Status::Inval) << "that OPEN is no more in effect";
}

TEST_F(Nfs4Opens, a_denial_that_was_given_up_is_no_more_in_effect) {
  open(a, kRead, kNone);
  const Stateid stateid = {0, open(a, kRead, kWrite).stateid.other};
  EXPECT_EQ(world.files.open_downgrade(file, stateid, kRead, kNone, *a.life).status, Status::Ok);
  EXPECT_EQ(world.files.open_downgrade(file, stateid, kRead, kWrite, *a.life).status,
            Status::Inval);
}

TEST_F(Nfs4Opens, undo_takes_back_an_OPEN_that_failed) {
  const OpenResult fresh = open(a, kRead, kWrite);
  world.files.undo(fresh);
  EXPECT_EQ(world.files.states(), 0u);
  EXPECT_TRUE(world.files.access(file, Touch::Write).granted());

  const Stateid reader = open(a, kRead).stateid;
  world.files.undo(open(a, kBoth, kNone));
  EXPECT_EQ(check(a, reader, Touch::Read), Status::Ok) << "its seqid is the current one";
  EXPECT_EQ(check(a, reader, Touch::Write), Status::Openmode);
  EXPECT_EQ(world.files.open_downgrade(file, reader, kBoth, kNone, *a.life).status, Status::Inval);
}

TEST_F(Nfs4Opens, undo_leaves_what_was_opened_since) {
  const OpenResult failing = open(a, kRead);
  const Stateid later = open(a, kWrite).stateid;
  world.files.undo(failing);
  EXPECT_EQ(check(a, later, Touch::Write), Status::Ok);
}

TEST_F(Nfs4Opens, a_lapsed_client_is_named_when_it_is_in_the_way) {
  open(a, kRead, kWrite);
  lapse(b);
  ASSERT_TRUE(a.life->lapsed());
  const OpenResult opened = open(b, kWrite);
  EXPECT_EQ(opened.verdict.kind, Verdict::Kind::Lapsed);
  EXPECT_EQ(opened.verdict.who, a.id);
  EXPECT_EQ(world.files.access(file, Touch::Write).kind, Verdict::Kind::Lapsed);
  EXPECT_TRUE(open(b, kRead).verdict.granted()) << "not in the way";
  world.files.release(*world.clients.end(a.id, true));
  EXPECT_TRUE(open(b, kWrite).verdict.granted());
}

TEST_F(Nfs4Opens, an_ended_client_denies_nothing_even_before_it_is_released) {
  const Stateid stateid = open(a, kBoth, kBoth).stateid;
  world.lock(a, 1, stateid, {0, 9}, true);
  const LifePtr ended = world.clients.end(a.id, false);
  EXPECT_TRUE(world.files.access(file, Touch::Write).granted());
  EXPECT_TRUE(open(b, kBoth, kBoth).verdict.granted());
  world.files.release(*ended);
  EXPECT_EQ(world.files.states(), 1u);
}

TEST_F(Nfs4Opens, nothing_is_added_for_a_client_that_ended) {
  const Stateid stateid = open(a, kBoth).stateid;
  world.clients.end(a.id, false);
  EXPECT_EQ(world.open(a, 2).verdict.status, Status::Expired);
  EXPECT_EQ(world.lock(a, 1, stateid, {0, 9}, true).verdict.status, Status::Expired);
  world.files.release(*a.life);
  EXPECT_EQ(world.files.states(), 0u);
  EXPECT_EQ(a.life->states.load(), 0u);
}

TEST_F(Nfs4Opens, are_granted_in_grace_to_reclaims_of_recorded_clients_only) {
  testing::Client fresh = world.fresh_client("c");
  const OpenArgs reclaim{file, bytes_of("owner"), kRead, kNone, true};
  EXPECT_EQ(world.files.open(reclaim, fresh.life).verdict.status, Status::NoGrace);
  world.grace->begin(world.now + std::chrono::hours(1), true);
  EXPECT_EQ(open(a, kRead).verdict.status, Status::Grace);
  EXPECT_EQ(check(a, kAnonymousStateid, Touch::Read), Status::Grace);
  EXPECT_EQ(world.files.open(reclaim, fresh.life).verdict.status, Status::ReclaimBad);
  fresh.life->may_reclaim = true;
  EXPECT_TRUE(world.files.open(reclaim, fresh.life).verdict.granted());
  world.clients.reclaim_complete(*fresh.life);
  EXPECT_EQ(world.files.open(reclaim, fresh.life).verdict.status, Status::NoGrace);
}

TEST_F(Nfs4Opens, new_opens_before_RECLAIM_COMPLETE_get_GRACE) {
  const testing::Client fresh = world.fresh_client("c");
  EXPECT_EQ(open(fresh, kRead).verdict.status, Status::Grace);
  world.clients.reclaim_complete(*fresh.life);
  EXPECT_TRUE(open(fresh, kRead).verdict.granted());
}

TEST_F(Nfs4Opens, a_reclaim_that_conflicts_is_RECLAIM_CONFLICT) {
  open(a, kRead, kWrite);
  const testing::Client fresh = world.fresh_client("c");
  fresh.life->may_reclaim = true;
  world.grace->begin(world.now + std::chrono::hours(1), true);
  EXPECT_EQ(world.files.open({file, bytes_of("o"), kWrite, kNone, true}, fresh.life).verdict.status,
            Status::ReclaimConflict);
}

TEST_F(Nfs4Opens, a_revoked_one_is_ADMIN_REVOKED_until_it_is_freed) {
  const Stateid stateid = open(a, kRead, kWrite).stateid;
  const Stateid lock = world.lock(a, 1, stateid, {0, 9}, false).stateid;
  EXPECT_EQ(world.files.revoke(stateid), Status::Ok);
  EXPECT_EQ(world.files.revoke(stateid), Status::Ok) << "once more changes nothing";
  EXPECT_TRUE(open(b, kWrite).verdict.granted());
  EXPECT_EQ(check(a, stateid, Touch::Read), Status::AdminRevoked);
  EXPECT_EQ(world.files.test_stateid(stateid, *a.life), Status::AdminRevoked);
  EXPECT_EQ(world.files.test_stateid(lock, *a.life), Status::AdminRevoked);
  EXPECT_EQ(world.files.close(file, stateid, *a.life).status, Status::AdminRevoked);
  EXPECT_EQ(world.sequence(a.session, 0, 1).status_flags, 0x20u);
  EXPECT_EQ(world.files.free_stateid(stateid, *a.life), Status::Ok);
  EXPECT_EQ(world.files.free_stateid(lock, *a.life), Status::Ok);
  EXPECT_EQ(world.sequence(a.session, 1, 1).status_flags, 0u);
  EXPECT_EQ(world.files.test_stateid(stateid, *a.life), Status::BadStateid);
  EXPECT_TRUE(world.files.list(a.id, 10).empty());
}

TEST_F(Nfs4Opens, FREE_STATEID_of_an_open_is_LOCKS_HELD) {
  const Stateid stateid = open(a, kRead).stateid;
  EXPECT_EQ(world.files.free_stateid(stateid, *a.life), Status::LocksHeld);
  EXPECT_EQ(world.files.free_stateid(stateid, *b.life), Status::BadStateid);
}

TEST_F(Nfs4Opens, are_listed_with_their_owners) {
  const Stateid stateid = open(a, kRead, kWrite).stateid;
  const Stateid lock = world.lock(a, 1, stateid, {5, 9}, false).stateid;
  const auto infos = world.files.list(a.id, 10);
  ASSERT_EQ(infos.size(), 2u);
  const StateInfo& of_open = infos[infos[0].type == StateInfo::Type::Open ? 0 : 1];
  const StateInfo& of_lock = infos[infos[0].type == StateInfo::Type::Open ? 1 : 0];
  EXPECT_EQ(of_open.stateid, stateid);
  EXPECT_EQ(of_open.owner, "owner");
  EXPECT_EQ(of_open.share_access, kRead);
  EXPECT_EQ(of_open.share_deny, kWrite);
  EXPECT_EQ(of_lock.stateid, lock);
  EXPECT_EQ(of_lock.owner, "locker");
  ASSERT_EQ(of_lock.ranges.size(), 1u);
  EXPECT_EQ(of_lock.ranges[0].first, (Range{5, 9}));
  EXPECT_EQ(world.files.list(a.id, 1).size(), 1u);
  EXPECT_TRUE(world.files.list(b.id, 10).empty());
}

TEST(Nfs4OpenLimits, one_client_or_address_does_not_take_all) {
  StateLimits limits;
  limits.states_of_client = 10;
  limits.states_of_address = 15;
  limits.states = 20;
  limits.shared_out = false;
  World world(1, {}, limits);
  const auto a = world.client("a", "192.0.2.1"), b = world.client("b", "192.0.2.1"),
             c = world.client("c", "192.0.2.2");
  const auto fill = [&](const testing::Client& client) {
    int count = 0;
    while (world.open(client, static_cast<std::uint64_t>(count)).verdict.granted()) ++count;
    EXPECT_EQ(world.open(client, 100).verdict.status, Status::Delay);
    return count;
  };
  EXPECT_EQ(fill(a), 10);
  EXPECT_EQ(fill(b), 5);
  EXPECT_EQ(fill(c), 5);
  EXPECT_TRUE(world.open(c, 0).verdict.granted()) << "an upgrade is nothing more";
  world.files.release(*world.clients.end(a.id, false));
  EXPECT_EQ(world.files.states(), 10u);
  EXPECT_EQ(c.life->account->states.load(), 5u);
}

TEST(Nfs4OpenLimits, an_address_has_no_more_than_it_leaves_free) {
  StateLimits limits;
  limits.states = 80;
  World world(1, {}, limits);
  const auto fill = [&](const testing::Client& client) {
    std::uint64_t count = 0;
    OpenResult opened;
    while ((opened = world.open(client, count)).verdict.granted()) ++count;
    EXPECT_EQ(opened.limit, Limit::All) << "where others go it may have more";
    return count;
  };
  const auto first = world.client("first", "192.0.2.1");
  EXPECT_EQ(fill(first), 40u);
  EXPECT_EQ(fill(world.client("second", "2001:db8::1")), 20u) << "of the same host, perhaps";
  EXPECT_EQ(fill(world.client("third", "192.0.2.3")), 10u);
  EXPECT_EQ(fill(world.client("fourth", "192.0.2.4")), 5u);
  world.files.release(*world.clients.end(first.id, false));
  EXPECT_EQ(fill(world.client("another", "192.0.2.1")), 23u);
}

// Clients at addresses of their own that come back after a restart.
class Nfs4ReclaimLimits : public ::testing::Test {
 protected:
  static StateLimits limits() {
    StateLimits limits;
    limits.states = 80;
    limits.states_of_address = 40;
    return limits;
  }
  Nfs4ReclaimLimits() { world.grace->begin(world.now + std::chrono::hours(1), true); }

  testing::Client back(std::uint64_t address) {
    const std::string number = std::to_string(address);
    const testing::Client client = world.fresh_client(number, "192.0.2." + number);
    client.life->may_reclaim = true;
    return client;
  }
  // How many opens the client reclaims, `most` at most.
  std::uint64_t reclaim(const testing::Client& client, std::uint64_t most) {
    std::uint64_t count = 0;
    while (
        count < most &&
        world.files.open({World::file(count), bytes_of("owner"), kRead, kNone, true}, client.life)
            .verdict.granted())
      ++count;
    return count;
  }

  World world{2, {}, limits()};
};

TEST_F(Nfs4ReclaimLimits, give_clients_back_what_they_had_in_whatever_order_they_come) {
  const std::uint64_t had[] = {40, 20, 10, 5, 2};  // as an_address_has_no_more_than_it_leaves_free
  for (std::size_t i = std::size(had); i-- > 0;) EXPECT_EQ(reclaim(back(i), had[i]), had[i]) << i;
}

TEST_F(Nfs4ReclaimLimits, let_no_address_that_lies_take_what_others_had) {
  EXPECT_EQ(reclaim(back(9), 1000), 40u);
  for (const std::uint64_t had : {5u, 10u, 20u, 40u}) EXPECT_EQ(reclaim(back(had), had), had);
}

TEST_F(Nfs4ReclaimLimits, bound_what_all_addresses_reclaim) {
  for (std::uint64_t address = 0; address < 30; ++address) reclaim(back(address), 1000);
  EXPECT_LE(world.files.states(), 160u);
}

TEST_F(Nfs4ReclaimLimits, are_those_of_locks_too) {
  const testing::Client first = back(1), second = back(2);
  EXPECT_EQ(reclaim(first, 20), 20u);
  EXPECT_EQ(reclaim(second, 1), 1u);
  const OpenResult open =
      world.files.open({World::file(0), bytes_of("owner"), kRead, kNone, true}, second.life);
  for (std::uint64_t i = 0; i < 38; ++i) {
    const LockArgs args{World::file(0), {2 * i, 2 * i},    false, true, true,
                        open.stateid,   bytes_of("locker")};
    EXPECT_TRUE(world.files.lock(args, second.life).verdict.granted()) << i;
  }
  EXPECT_EQ(second.life->states.load(), 40u);
}

TEST(Nfs4OpenLimits, large_owners_count_more_than_once) {
  StateLimits limits;
  limits.states_of_client = 10;
  World world(1, {}, limits);
  const auto client = world.client("a");
  const std::string owner(1024, 'x');
  EXPECT_TRUE(world.open(client, 1, kRead, 0, owner).verdict.granted());
  EXPECT_EQ(world.files.states(), 5u);
  EXPECT_TRUE(world.open(client, 2, kRead, 0, owner).verdict.granted());
  EXPECT_EQ(world.open(client, 3, kRead, 0, owner).verdict.status, Status::Delay);
}

}  // namespace
}  // namespace stag::nfs::state
