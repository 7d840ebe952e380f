// What a client does with everything that a server may say about its session (RFC 8881 2.10, 8.3,
// 18.35, 18.36, 18.46, 18.51; RFC 8267 6.6).
#include "nfs/session/session.h"

#include <gtest/gtest.h>

#include "testing/proves.h"

namespace stag::nfs::session {
namespace {

constexpr TimePoint kStart{};

v4::EXCHANGE_ID4res client_is(v4::clientid4 id, v4::sequenceid4 sequence, bool known = false) {
  v4::EXCHANGE_ID4res results;
  results.eir_resok4().eir_clientid = id;
  results.eir_resok4().eir_sequenceid = sequence;
  results.eir_resok4().eir_flags = known ? v4::EXCHGID4_FLAG_CONFIRMED_R : 0;
  return results;
}

v4::CREATE_SESSION4res session_is(std::uint8_t id, std::uint32_t slots = 4) {
  v4::CREATE_SESSION4res results;
  results.csr_resok4().csr_sessionid.fill(std::byte{id});
  results.csr_resok4().csr_fore_chan_attrs = {0, 1 << 20, 1 << 20, 4096, 32, slots, {}};
  return results;
}

v4::SEQUENCE4res says(v4::nfsstat4 status) {
  v4::SEQUENCE4res results;
  results.sr_status = status;
  return results;
}

v4::SEQUENCE4res echo(const Session& session, const Slots::Turn& turn) {
  v4::SEQUENCE4res results;
  v4::SEQUENCE4resok& resok = results.sr_resok4();
  resok.sr_sessionid = session.sessionid();
  resok.sr_slotid = turn.slot;
  resok.sr_sequenceid = turn.sequence;
  resok.sr_highest_slotid = resok.sr_target_highest_slotid = 3;
  return results;
}

struct Established {
  explicit Established(std::uint32_t slots = 4) : session({"owner"}) {
    EXPECT_EQ(session.on_exchange_id(client_is(7, 40)), Fate::Go);
    EXPECT_EQ(session.on_create_session(session_is(1, slots)), Fate::Go);
    EXPECT_EQ(session.on_reclaim_complete(v4::NFS4_OK), Fate::Go);
    EXPECT_EQ(session.step(), Step::Ready);
  }
  Fate call(v4::nfsstat4 status) {
    const Slots::Turn turn = *session.take();
    if (status == v4::NFS4_OK) return session.on_sequence(turn, echo(session, turn), kStart);
    return session.on_sequence(turn, says(status), kStart);
  }
  void renew_session(std::uint8_t id) {
    EXPECT_EQ(session.step(), Step::CreateSession);
    EXPECT_EQ(session.on_create_session(session_is(id)), Fate::Go);
  }
  Session session;
};

TEST(Session, begins_with_EXCHANGE_ID_CREATE_SESSION_and_RECLAIM_COMPLETE) {
  Session session({"owner"});
  EXPECT_EQ(session.step(), Step::ExchangeId);
  EXPECT_EQ(session.exchange_id().eia_flags, v4::EXCHGID4_FLAG_USE_NON_PNFS);
  session.on_exchange_id(client_is(7, 40));
  EXPECT_EQ(session.step(), Step::CreateSession);
  EXPECT_EQ(session.create_session().csa_clientid, 7u);
  EXPECT_EQ(session.create_session().csa_sequence, 40u);
  session.on_create_session(session_is(1));
  EXPECT_EQ(session.step(), Step::ReclaimComplete);
  session.on_reclaim_complete(v4::NFS4_OK);
  EXPECT_EQ(session.step(), Step::Ready);
}

TEST(Session, offers_callbacks_that_fit_a_short_message_and_no_channel_for_them) {
  PROVES("R8267-6.5.2-e");
  const Session session({"owner"});
  const v4::CREATE_SESSION4args args = session.create_session();
  EXPECT_LE(args.csa_back_chan_attrs.ca_maxrequestsize, 1024u) << "the least inline threshold";
  EXPECT_EQ(args.csa_flags, 0u);
}

TEST(Session, is_made_again_with_the_same_client_ID_when_it_is_gone) {
  for (const auto status :
       {v4::NFS4ERR_BADSESSION, v4::NFS4ERR_DEADSESSION, v4::NFS4ERR_SEQ_MISORDERED}) {
    Established world;
    EXPECT_EQ(world.call(status), Fate::Again);
    EXPECT_EQ(world.session.step(), Step::CreateSession);
    EXPECT_EQ(world.session.create_session().csa_sequence, 41u);
    world.renew_session(2);
    EXPECT_EQ(world.session.step(), Step::Ready) << "RECLAIM_COMPLETE belongs to the client ID";
    EXPECT_EQ(world.session.take()->sequence, 1u);
  }
}

v4::BIND_CONN_TO_SESSION4res bind_says(v4::nfsstat4 status,
                                       v4::channel_dir_from_server4 direction = v4::CDFS4_BOTH) {
  v4::BIND_CONN_TO_SESSION4res results;
  results.bctsr_status = status;
  if (status == v4::NFS4_OK) results.bctsr_resok4().bctsr_dir = direction;
  return results;
}

TEST(Session, a_call_by_a_connection_that_is_not_bound_goes_again_in_its_turn) {
  Established world;
  const Slots::Turn turn = *world.session.take();
  const auto unbound = says(v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  EXPECT_EQ(world.session.on_sequence(turn, unbound, kStart), Fate::Unbound);
  const auto asked = world.session.bind_connection();
  EXPECT_EQ(asked.bctsa_sessid, world.session.sessionid());
  EXPECT_EQ(asked.bctsa_dir, v4::CDFC4_FORE_OR_BOTH);
  const v4::sessionid4 id = world.session.sessionid();
  EXPECT_EQ(world.session.on_bind_connection(id, bind_says(v4::NFS4ERR_DELAY)), Fate::Later);
  EXPECT_EQ(world.session.on_bind_connection(id, bind_says(v4::NFS4_OK)), Fate::Go);
  EXPECT_EQ(world.session.step(), Step::Ready);
  EXPECT_EQ(world.session.sequence(turn, false).sa_sequenceid, 1u);
  EXPECT_EQ(world.session.on_sequence(turn, echo(world.session, turn), kStart), Fate::Go);
  EXPECT_EQ(world.session.take()->sequence, 2u);
}

TEST(Session, a_doubtful_turn_stays_so_until_the_connection_is_bound) {
  Established world(1);
  const Slots::Turn lost = *world.session.take();
  world.session.on_loss(lost);
  Slots::Turn turn = *world.session.take();
  ASSERT_TRUE(turn.doubtful);
  const auto unbound = says(v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  EXPECT_EQ(world.session.on_settling(turn, unbound, kStart), Fate::Unbound);
  EXPECT_EQ(turn.sequence, 1u);
  EXPECT_EQ(world.session.on_settling(turn, echo(world.session, turn), kStart), Fate::Go);
  EXPECT_EQ(turn.sequence, 2u);
}

TEST(Session, is_made_again_when_no_connection_can_be_bound_to_it) {
  for (const auto status : {v4::NFS4ERR_BADSESSION, v4::NFS4ERR_INVAL, v4::NFS4ERR_WRONG_CRED}) {
    Established world;
    const v4::sessionid4 id = world.session.sessionid();
    EXPECT_EQ(world.session.on_bind_connection(id, bind_says(status)), Fate::Again);
    EXPECT_EQ(world.session.step(), Step::CreateSession);
    world.renew_session(2);
    EXPECT_EQ(world.session.on_bind_connection(id, bind_says(status)), Fate::Again);
    EXPECT_EQ(world.session.step(), Step::Ready) << "it was said of the session before";
  }
}

TEST(Session, is_unsteady_when_its_connection_never_gets_bound) {
  Established world;
  const Slots::Turn turn = *world.session.take();
  const auto unbound = says(v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  const v4::sessionid4 id = world.session.sessionid();
  for (std::uint32_t i = 0; i < Session::kMostRecoveries; ++i) {
    ASSERT_EQ(world.session.on_sequence(turn, unbound, kStart), Fate::Unbound);
    ASSERT_EQ(world.session.on_bind_connection(id, bind_says(v4::NFS4_OK)), Fate::Go);
  }
  EXPECT_EQ(world.session.on_sequence(turn, unbound, kStart), Fate::Unbound);
  EXPECT_EQ(world.session.on_bind_connection(id, bind_says(v4::NFS4_OK)), Fate::Unsteady);
}

TEST(Session, is_not_given_up_when_many_calls_find_out_together_that_the_connection_is_not_bound) {
  Established world(16);
  std::vector<Slots::Turn> turns;
  while (const auto turn = world.session.take()) turns.push_back(*turn);
  ASSERT_EQ(turns.size(), 16u);
  const auto unbound = says(v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  for (const Slots::Turn& turn : turns)
    ASSERT_EQ(world.session.on_sequence(turn, unbound, kStart), Fate::Unbound);
  const v4::sessionid4 id = world.session.sessionid();
  EXPECT_EQ(world.session.on_bind_connection(id, bind_says(v4::NFS4_OK)), Fate::Go);
  for (const Slots::Turn& turn : turns)
    EXPECT_EQ(world.session.on_sequence(turn, echo(world.session, turn), kStart), Fate::Go);
}

TEST(Session, knows_whether_its_lease_has_run_out) {
  Established world;
  world.call(v4::NFS4_OK);
  const Duration lease = world.session.lease();
  EXPECT_FALSE(world.session.lapsed(kStart + lease - std::chrono::seconds(1)));
  EXPECT_TRUE(world.session.lapsed(kStart + lease));
}

TEST(Session, has_a_lease_from_when_a_call_was_sent_in_whichever_order_answers_come) {
  Established world;
  const Duration lease = world.session.lease();
  const Slots::Turn first = *world.session.take();
  const Slots::Turn second = *world.session.take();
  const TimePoint later = kStart + std::chrono::seconds(20);
  world.session.on_sequence(second, echo(world.session, second), later);
  world.session.on_sequence(first, echo(world.session, first), kStart);
  EXPECT_FALSE(world.session.lapsed(kStart + lease));
  EXPECT_TRUE(world.session.lapsed(later + lease));
}

TEST(Session, knows_whether_the_connection_that_it_is_bound_to_carries_callbacks) {
  Session session({.owner = "owner", .called_back = true});
  session.on_exchange_id(client_is(7, 40));
  v4::CREATE_SESSION4res made = session_is(1);
  made.csr_resok4().csr_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
  made.csr_resok4().csr_back_chan_attrs.ca_maxrequests = 4;
  session.on_create_session(made);
  EXPECT_TRUE(session.has_back_channel());
  const v4::sessionid4 id = session.sessionid();
  session.on_bind_connection(id, bind_says(v4::NFS4_OK, v4::CDFS4_FORE));
  EXPECT_FALSE(session.has_back_channel());
  session.on_bind_connection(id, bind_says(v4::NFS4_OK, v4::CDFS4_BOTH));
  EXPECT_TRUE(session.has_back_channel());
  session.replace();
  EXPECT_EQ(session.step(), Step::CreateSession);
}

// RFC 8881 2.10.8.3, 18.35.3.
Session with_machine_credential() {
  return Session({.owner = "owner", .machine_credential = true});
}

v4::EXCHANGE_ID4res protects(std::initializer_list<v4::nfs_opnum4> enforced) {
  v4::EXCHANGE_ID4res results = client_is(7, 1);
  v4::state_protect4_r& protect = results.eir_resok4().eir_state_protect;
  protect.spr_how = v4::SP4_MACH_CRED;
  auto& set = protect.spr_mach_ops().spo_must_enforce;
  set.resize(2);
  for (const v4::nfs_opnum4 each : enforced) set[each / 32] |= 1u << each % 32;
  return results;
}

TEST(Session, asks_for_what_nobody_else_shall_do_with_a_machine_credential) {
  Session session = with_machine_credential();
  v4::EXCHANGE_ID4args args = session.exchange_id();
  ASSERT_EQ(args.eia_state_protect.spa_how, v4::SP4_MACH_CRED);
  const auto granted =
      protects({v4::OP_BIND_CONN_TO_SESSION, v4::OP_EXCHANGE_ID, v4::OP_CREATE_SESSION,
                v4::OP_DESTROY_SESSION, v4::OP_DESTROY_CLIENTID});
  EXPECT_EQ(args.eia_state_protect.spa_mach_ops().spo_must_enforce,
            granted.eir_resok4().eir_state_protect.spr_mach_ops().spo_must_enforce);
  EXPECT_EQ(session.on_exchange_id(granted), Fate::Go);
  EXPECT_TRUE(session.is_protected());
  EXPECT_EQ(session.exchange_id().eia_state_protect.spa_how, v4::SP4_MACH_CRED);
}

TEST(Session, asks_for_no_protection_without_a_machine_credential) {
  Session session({"owner"});
  EXPECT_EQ(session.exchange_id().eia_state_protect.spa_how, v4::SP4_NONE);
  session.on_exchange_id(client_is(7, 1));
  EXPECT_FALSE(session.is_protected());
}

TEST(Session, takes_a_server_that_protects_nothing_as_it_is) {
  Session session = with_machine_credential();
  EXPECT_EQ(session.on_exchange_id(client_is(7, 1)), Fate::Go);
  EXPECT_FALSE(session.is_protected());
}

TEST(Session, asks_for_no_protection_where_that_is_refused_or_more_than_was_asked) {
  v4::EXCHANGE_ID4res refused;
  refused.eir_status = v4::NFS4ERR_INVAL;
  for (const auto& answer : {refused, protects({v4::OP_EXCHANGE_ID, v4::OP_READ})}) {
    Session session = with_machine_credential();
    EXPECT_EQ(session.on_exchange_id(answer), Fate::Again);
    EXPECT_EQ(session.step(), Step::ExchangeId);
    EXPECT_EQ(session.exchange_id().eia_state_protect.spa_how, v4::SP4_NONE);
    EXPECT_EQ(session.on_exchange_id(client_is(7, 1)), Fate::Go);
    EXPECT_FALSE(session.is_protected());
  }
}

TEST(Session, begins_with_EXCHANGE_ID_when_the_server_forgot_the_client) {
  Established world;
  world.call(v4::NFS4ERR_BADSESSION);
  EXPECT_EQ(world.session.on_create_session([] {
    v4::CREATE_SESSION4res stale;
    stale.csr_status = v4::NFS4ERR_STALE_CLIENTID;
    return stale;
  }()),
            Fate::Again);
  EXPECT_EQ(world.session.step(), Step::ExchangeId);
  world.session.on_exchange_id(client_is(8, 1));
  world.session.on_create_session(session_is(3));
  EXPECT_EQ(world.session.step(), Step::ReclaimComplete);
  EXPECT_EQ(world.session.incarnation(), 2u);
}

TEST(Session, counts_its_sessions_on_when_the_server_still_knows_the_client) {
  Established world;
  world.call(v4::NFS4ERR_STALE_CLIENTID);
  world.session.on_exchange_id(client_is(7, 1, true));
  EXPECT_EQ(world.session.create_session().csa_sequence, 41u);
  EXPECT_EQ(world.session.incarnation(), 1u);
}

TEST(Session, begins_another_incarnation_when_it_lost_its_count) {
  Established world;
  const auto before = world.session.exchange_id().eia_clientowner;
  world.call(v4::NFS4ERR_BADSESSION);
  v4::CREATE_SESSION4res misordered;
  misordered.csr_status = v4::NFS4ERR_SEQ_MISORDERED;
  EXPECT_EQ(world.session.on_create_session(misordered), Fate::Again);
  const auto after = world.session.exchange_id().eia_clientowner;
  EXPECT_NE(before.co_verifier, after.co_verifier);
  EXPECT_EQ(before.co_ownerid, after.co_ownerid);
}

TEST(Session, is_to_be_destroyed_when_the_server_keeps_it) {
  for (const auto status : {v4::NFS4ERR_SEQ_MISORDERED, v4::NFS4ERR_BAD_HIGH_SLOT,
                            v4::NFS4ERR_DEADSESSION, v4::NFS4ERR_BADSLOT}) {
    Established world(1);
    const v4::sessionid4 before = world.session.sessionid();
    EXPECT_EQ(world.call(status), Fate::Again);
    EXPECT_EQ(world.session.left_behind(), before);
    world.renew_session(2);
    EXPECT_EQ(world.session.left_behind(), before);
    world.session.on_destroyed(before);
    EXPECT_EQ(world.session.left_behind(), std::nullopt);
  }
}

// A call of it that loses its connection goes by another one, and has its results from the session.
TEST(Session, that_was_left_is_not_to_be_destroyed_before_its_calls_have_ended) {
  Established world;
  const v4::sessionid4 before = world.session.sessionid();
  const Slots::Turn answered = *world.session.take();
  const Slots::Turn lost = *world.session.take();
  const v4::SEQUENCE4res answer = echo(world.session, answered);
  EXPECT_EQ(world.call(v4::NFS4ERR_SEQ_MISORDERED), Fate::Again);
  EXPECT_EQ(world.session.left_idle(), before) << "there may be no room for another one";
  world.renew_session(2);
  EXPECT_EQ(world.session.left_idle(), std::nullopt);
  EXPECT_EQ(world.session.on_sequence(answered, answer, kStart), Fate::Go);
  EXPECT_EQ(world.session.left_idle(), std::nullopt);
  const Slots::Turn later = *world.session.take();
  world.session.on_loss(lost);
  EXPECT_EQ(world.session.left_idle(), before);
  world.session.on_loss(later);
}

TEST(Session, that_was_left_is_not_waited_for_where_another_one_is_idle) {
  Established world;
  world.session.take();
  const v4::sessionid4 first = world.session.sessionid();
  world.call(v4::NFS4ERR_SEQ_MISORDERED);
  world.renew_session(2);
  const v4::sessionid4 second = world.session.sessionid();
  world.call(v4::NFS4ERR_SEQ_MISORDERED);
  world.renew_session(3);
  EXPECT_EQ(world.session.left_idle(), second);
  EXPECT_EQ(world.session.left_behind(), first);
  world.session.on_kept(first);
  EXPECT_EQ(world.session.left_behind(), second);
}

TEST(Session, is_not_to_be_destroyed_when_the_server_does_not_know_it) {
  for (const auto status : {v4::NFS4ERR_BADSESSION, v4::NFS4ERR_STALE_CLIENTID}) {
    Established world;
    EXPECT_EQ(world.call(status), Fate::Again);
    EXPECT_EQ(world.session.left_behind(), std::nullopt);
  }
  Established world;
  world.call(v4::NFS4ERR_SEQ_MISORDERED);
  world.renew_session(2);
  EXPECT_EQ(world.call(v4::NFS4ERR_STALE_CLIENTID), Fate::Again);
  world.session.on_exchange_id(client_is(8, 1));
  EXPECT_EQ(world.session.left_behind(), std::nullopt) << "it went with the client";
}

TEST(Session, is_not_to_be_destroyed_when_the_next_one_has_its_name) {
  Established world;
  world.call(v4::NFS4ERR_SEQ_MISORDERED);
  world.renew_session(1);
  EXPECT_EQ(world.session.left_behind(), std::nullopt);
}

TEST(Session, keeps_the_newest_of_those_it_left_behind) {
  Established world;
  for (std::uint8_t id = 2; id < 100; ++id) {
    world.call(v4::NFS4ERR_SEQ_MISORDERED);
    world.renew_session(id);
    world.call(v4::NFS4_OK);
  }
  std::size_t left = 0;
  for (; const auto session = world.session.left_behind(); ++left)
    world.session.on_destroyed(*session);
  EXPECT_EQ(left, Session::kMostLeft);
}

TEST(Session, waits_for_the_end_of_one_it_left_when_there_is_no_room) {
  Established world;
  world.call(v4::NFS4ERR_SEQ_MISORDERED);
  v4::CREATE_SESSION4res answer;
  answer.csr_status = v4::NFS4ERR_NOSPC;
  EXPECT_EQ(world.session.on_create_session(answer), Fate::Later);
  EXPECT_EQ(world.session.create_session().csa_sequence, 42u);
  world.session.on_destroyed(*world.session.left_behind());
  EXPECT_EQ(world.session.on_create_session(answer), Fate::Refused);
}

// RFC 8881 18.36.4: a server keeps refusals, too, and repeats them to whoever sends their number.
TEST(Session, counts_a_refused_CREATE_SESSION) {
  Established world;
  world.call(v4::NFS4ERR_BADSESSION);
  v4::CREATE_SESSION4res answer;
  answer.csr_status = v4::NFS4ERR_DELAY;
  EXPECT_EQ(world.session.on_create_session(answer), Fate::Later);
  EXPECT_EQ(world.session.create_session().csa_sequence, 41u) << "which nobody keeps";
  answer.csr_status = v4::NFS4ERR_NOSPC;
  EXPECT_EQ(world.session.on_create_session(answer), Fate::Refused);
  EXPECT_EQ(world.session.create_session().csa_sequence, 42u);
  world.renew_session(2);
}

TEST(Session, is_unsteady_while_the_server_loses_every_one) {
  Established world;
  Fate fate = Fate::Again;
  std::uint32_t sessions = 0;
  while (fate == Fate::Again && sessions < 100) {
    fate = world.call(v4::NFS4ERR_BADSESSION);
    if (fate == Fate::Again) world.renew_session(static_cast<std::uint8_t>(++sessions));
  }
  EXPECT_EQ(fate, Fate::Unsteady);
  EXPECT_EQ(sessions, Session::kMostRecoveries);
  world.renew_session(99);
  EXPECT_EQ(world.call(v4::NFS4ERR_BADSESSION), Fate::Unsteady) << "no call was answered yet";
  world.renew_session(100);
  EXPECT_EQ(world.call(v4::NFS4_OK), Fate::Go);
  EXPECT_EQ(world.call(v4::NFS4ERR_BADSESSION), Fate::Again);
}

TEST(Session, is_not_given_up_when_many_calls_find_out_together_that_it_is_gone) {
  Established world(64);
  std::vector<Slots::Turn> turns;
  while (const auto turn = world.session.take()) turns.push_back(*turn);
  for (const Slots::Turn& turn : turns)
    EXPECT_EQ(world.session.on_sequence(turn, says(v4::NFS4ERR_BADSESSION), kStart), Fate::Again);
  world.renew_session(2);
  EXPECT_EQ(world.call(v4::NFS4_OK), Fate::Go);
}

// RFC 8881 2.10.6.2, 15.1.1.3.
TEST(Session, gives_nobody_else_the_slot_of_a_call_that_the_server_may_be_busy_with) {
  Established world;
  const Slots::Turn turn = *world.session.take();
  EXPECT_EQ(world.session.on_sequence(turn, says(v4::NFS4ERR_DELAY), kStart), Fate::Busy);
  const Slots::Turn other = *world.session.take();
  EXPECT_NE(other.slot, turn.slot);
  EXPECT_EQ(world.session.on_sequence(other, echo(world.session, other), kStart), Fate::Go);
  const v4::SEQUENCE4args again = world.session.sequence(turn, true);
  EXPECT_EQ(again.sa_slotid, turn.slot);
  EXPECT_EQ(again.sa_sequenceid, turn.sequence);
  EXPECT_EQ(world.session.on_sequence(turn, echo(world.session, turn), kStart), Fate::Go);
  const Slots::Turn next = *world.session.take();
  EXPECT_EQ(next.slot, turn.slot);
  EXPECT_EQ(next.sequence, turn.sequence + 1);
}

TEST(Session, goes_on_to_ask_a_session_that_was_left_about_a_call_it_may_be_busy_with) {
  Established world;
  const v4::sessionid4 before = world.session.sessionid();
  const Slots::Turn turn = *world.session.take();
  const Slots::Turn above = *world.session.take();
  world.session.replace();
  world.renew_session(2);
  EXPECT_EQ(world.session.on_sequence(turn, says(v4::NFS4ERR_DELAY), kStart), Fate::Busy);
  EXPECT_TRUE(world.session.knows(turn));
  const v4::SEQUENCE4args again = world.session.sequence(turn, true);
  EXPECT_EQ(again.sa_sessionid, before);
  EXPECT_EQ(again.sa_slotid, turn.slot);
  EXPECT_EQ(again.sa_sequenceid, turn.sequence);
  EXPECT_EQ(again.sa_highest_slotid, above.slot) << "of its own session";
  world.session.on_loss(above);
  EXPECT_FALSE(world.session.left_idle()) << "and so it is not destroyed";
  const auto uncached = says(v4::NFS4ERR_RETRY_UNCACHED_REP);
  EXPECT_EQ(world.session.on_sequence(turn, uncached, kStart), Fate::Gone) << "it was executed";
  EXPECT_EQ(world.session.left_idle(), before);
  world.session.on_destroyed(before);
  EXPECT_FALSE(world.session.knows(turn));
}

// A server that is still at the first transmission may say so of the second one.
TEST(Session, that_was_left_wants_its_call_asked_about_by_a_connection_that_is_bound) {
  Established world;
  const Slots::Turn turn = *world.session.take();
  world.session.replace();
  world.renew_session(2);
  const auto unbound = says(v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  EXPECT_EQ(world.session.on_sequence(turn, unbound, kStart), Fate::Unbound);
  EXPECT_EQ(world.session.left_idle(), std::nullopt) << "the call goes on";
  EXPECT_EQ(world.session.sequence(turn, false).sa_sessionid,
            session_is(1).csr_resok4().csr_sessionid);
  world.session.on_destroyed(world.session.sequence(turn, false).sa_sessionid);
  EXPECT_EQ(world.session.on_sequence(turn, unbound, kStart), Fate::Again);
}

TEST(Session, is_busy_with_a_call_that_was_sent_twice_and_is_out_of_order) {
  for (const bool left : {false, true}) {
    Established world;
    Slots::Turn turn = *world.session.take();
    turn.repeated = true;
    if (left) {
      world.session.replace();
      world.renew_session(2);
    }
    const v4::SEQUENCE4res answer = says(v4::NFS4ERR_SEQ_MISORDERED);
    EXPECT_EQ(world.session.on_sequence(turn, answer, kStart), Fate::Busy);
    EXPECT_TRUE(world.session.knows(turn));
    EXPECT_EQ(world.session.step(), Step::Ready) << "the session is of use";
    if (left) continue;
    EXPECT_EQ(world.session.on_settling(turn, answer, kStart), Fate::Later);
    ASSERT_EQ(world.session.on_settling(turn, echo(world.session, turn), kStart), Fate::Go);
    EXPECT_EQ(world.session.on_sequence(turn, answer, kStart), Fate::Again)
        << "the next number was sent once";
  }
}

TEST(Session, uses_a_slot_again_whose_call_had_no_answer_after_a_lone_SEQUENCE) {
  PROVES("R8267-6.6-d");
  for (const bool executed : {false, true}) {
    Established world(1);
    world.session.on_loss(*world.session.take());
    Slots::Turn turn = *world.session.take();
    ASSERT_TRUE(turn.doubtful);
    EXPECT_EQ(turn.sequence, 1u);
    // RFC 8881 2.10.6.1.3: the server says so, or answers as it did, or knows nothing of it.
    const v4::SEQUENCE4res answer =
        executed ? says(v4::NFS4ERR_RETRY_UNCACHED_REP) : echo(world.session, turn);
    EXPECT_EQ(world.session.on_settling(turn, answer, kStart), Fate::Go);
    EXPECT_EQ(turn.sequence, 2u);
    EXPECT_EQ(world.session.on_sequence(turn, echo(world.session, turn), kStart), Fate::Go);
    EXPECT_EQ(world.session.take()->sequence, 3u);
  }
}

TEST(Session, leaves_a_slot_in_doubt_whose_lost_call_still_runs) {
  Established world(1);
  world.session.on_loss(*world.session.take());
  Slots::Turn turn = *world.session.take();
  EXPECT_EQ(world.session.on_settling(turn, says(v4::NFS4ERR_DELAY), kStart), Fate::Later);
  EXPECT_FALSE(world.session.take()) << "whoever asks goes on to ask";
  world.session.on_loss(turn);
  EXPECT_TRUE(world.session.take()->doubtful);
}

TEST(Session, has_a_slot_that_is_certain_when_it_was_settled_for_nobody) {
  Established world(1);
  world.session.on_loss(*world.session.take());
  Slots::Turn turn = *world.session.take();
  ASSERT_EQ(world.session.on_settling(turn, echo(world.session, turn), kStart), Fate::Go);
  world.session.on_settled(turn);
  const auto next = world.session.take();
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->doubtful);
  EXPECT_EQ(next->sequence, 2u);
}

TEST(Session, tells_that_results_are_gone_and_goes_on_with_the_next_number) {
  for (const auto status : {v4::NFS4ERR_RETRY_UNCACHED_REP, v4::NFS4ERR_SEQ_FALSE_RETRY}) {
    Established world;
    EXPECT_EQ(world.call(status), Fate::Gone);
    EXPECT_EQ(world.session.take()->sequence, 2u);
  }
}

TEST(Session, does_without_slots_that_the_server_took_away) {
  Established world;
  const auto keep = *world.session.take();
  const auto bad = *world.session.take();
  EXPECT_EQ(world.session.on_sequence(bad, says(v4::NFS4ERR_BADSLOT), kStart), Fate::Again);
  EXPECT_EQ(world.session.step(), Step::Ready);
  EXPECT_FALSE(world.session.take().has_value());
  EXPECT_EQ(world.session.on_sequence(keep, says(v4::NFS4ERR_BADSLOT), kStart), Fate::Again);
  EXPECT_EQ(world.session.step(), Step::CreateSession) << "none was left";
}

TEST(Session, keeps_below_the_highest_slot_that_the_server_wants_used) {
  Established world;
  const auto turn = *world.session.take();
  v4::SEQUENCE4res answer = echo(world.session, turn);
  answer.sr_resok4().sr_target_highest_slotid = 0;
  EXPECT_EQ(world.session.on_sequence(turn, answer, kStart), Fate::Go);
  EXPECT_TRUE(world.session.take().has_value());
  EXPECT_FALSE(world.session.take().has_value());
}

TEST(Session, does_not_take_the_answer_to_another_call) {
  for (int wrong = 0; wrong < 3; ++wrong) {
    Established world;
    const auto turn = *world.session.take();
    v4::SEQUENCE4res answer = echo(world.session, turn);
    if (wrong == 0) answer.sr_resok4().sr_sequenceid += 1;
    if (wrong == 1) answer.sr_resok4().sr_slotid += 1;
    if (wrong == 2) answer.sr_resok4().sr_sessionid[0] ^= std::byte{1};
    EXPECT_EQ(world.session.on_sequence(turn, answer, kStart), Fate::Broken);
  }
}

TEST(Session, does_not_take_a_session_that_carries_nothing) {
  for (int wrong = 0; wrong < 4; ++wrong) {
    Session session({"owner"});
    session.on_exchange_id(client_is(7, 1));
    v4::CREATE_SESSION4res made = session_is(1);
    v4::channel_attrs4& fore = made.csr_resok4().csr_fore_chan_attrs;
    if (wrong == 0) fore.ca_maxrequests = 0;
    if (wrong == 1) fore.ca_maxoperations = 2;
    if (wrong == 2) fore.ca_maxrequestsize = 100;
    if (wrong == 3) fore.ca_maxresponsesize = 0;
    EXPECT_EQ(session.on_create_session(made), Fate::Broken) << wrong;
  }
}

TEST(Session, sends_RECLAIM_COMPLETE_to_a_server_that_restarted) {
  Established world;
  const auto turn = *world.session.take();
  v4::SEQUENCE4res answer = echo(world.session, turn);
  answer.sr_resok4().sr_status_flags = v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
  const std::uint32_t before = world.session.incarnation();
  EXPECT_EQ(world.session.on_sequence(turn, answer, kStart), Fate::Go);
  EXPECT_EQ(world.session.step(), Step::ReclaimComplete);
  EXPECT_EQ(world.session.incarnation(), before + 1) << "what was held is to be claimed";
  const auto again = *world.session.take();
  answer = echo(world.session, again);
  answer.sr_resok4().sr_status_flags = v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
  EXPECT_EQ(world.session.on_sequence(again, answer, kStart), Fate::Go);
  EXPECT_EQ(world.session.incarnation(), before + 1) << "it says so until RECLAIM_COMPLETE";
  EXPECT_EQ(world.session.on_reclaim_complete(v4::NFS4ERR_COMPLETE_ALREADY), Fate::Go);
  EXPECT_EQ(world.session.step(), Step::Ready);
}

v4::SEQUENCE4res says_restarted(const Session& session, const Slots::Turn& turn) {
  v4::SEQUENCE4res answer = echo(session, turn);
  answer.sr_resok4().sr_status_flags = v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
  return answer;
}

// RFC 8881 18.46.3: a server says so until RECLAIM_COMPLETE, also of what it is still at then.
TEST(Session, takes_no_late_answer_for_another_restart) {
  Session session({"owner"});
  session.on_exchange_id(client_is(7, 40));
  session.on_create_session(session_is(1));
  const auto write = *session.take();
  const auto lost = *session.take();
  const auto complete = *session.take();
  session.on_sequence(complete, says_restarted(session, complete), kStart);
  session.on_reclaim_complete(v4::NFS4_OK);
  const std::uint32_t before = session.incarnation();
  session.on_sequence(write, says_restarted(session, write), kStart);
  EXPECT_EQ(session.incarnation(), before);
  // What is kept of a call that got no answer is of then, too.
  session.on_loss(lost);
  while (session.slots().has_certain()) session.take();
  Slots::Turn settled = *session.take();
  ASSERT_TRUE(settled.doubtful);
  session.on_settling(settled, says_restarted(session, settled), kStart);
  EXPECT_EQ(session.incarnation(), before);
  EXPECT_EQ(session.step(), Step::Ready);
  session.on_sequence(settled, says_restarted(session, settled), kStart);
  EXPECT_EQ(session.incarnation(), before + 1) << "sent behind RECLAIM_COMPLETE";
}

// Of a server that has kept the session.
TEST(Session, takes_a_late_answer_of_before_the_restart_for_no_other_one) {
  Established world;
  Session& session = world.session;
  const auto late = *session.take();
  const auto first = *session.take();
  session.on_sequence(first, says_restarted(session, first), kStart);
  const std::uint32_t restarted = session.incarnation();
  session.on_reclaim_complete(v4::NFS4_OK);
  session.on_sequence(late, says_restarted(session, late), kStart);
  EXPECT_EQ(session.incarnation(), restarted);
  EXPECT_EQ(session.step(), Step::Ready);
}

TEST(Session, has_its_connection_take_callbacks_where_they_are_served) {
  for (const bool served : {false, true}) {
    Session session({.owner = "owner", .called_back = served});
    session.on_exchange_id(client_is(7, 40));
    EXPECT_EQ(session.create_session().csa_flags,
              served ? v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN : 0u);
    v4::CREATE_SESSION4res made = session_is(1);
    made.csr_resok4().csr_back_chan_attrs.ca_maxrequests = 5;
    session.on_create_session(made);
    EXPECT_EQ(session.back_slots(), 0u) << "the server has not bound it";
    made.csr_resok4().csr_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    session.on_create_session(made);
    EXPECT_EQ(session.back_slots(), served ? 5u : 0u);
  }
}

TEST(Session, uses_no_slot_above_the_one_that_a_callback_names) {
  Established world;
  world.session.on_recall_slot(1);
  EXPECT_EQ(world.session.slots().usable(), 2u);
}

TEST(Session, believes_no_lease_that_would_make_it_spin_or_wait_for_ever) {
  Established world;
  world.session.set_lease(std::chrono::seconds(0));
  EXPECT_EQ(world.session.lease(), session::Session::kShortestLease);
  world.session.set_lease(std::chrono::seconds(0xffff'ffff));
  EXPECT_EQ(world.session.lease(), session::Session::kLongestLease);
}

TEST(Session, is_renewed_before_a_third_of_the_lease_has_passed) {
  Established world;
  world.session.set_lease(std::chrono::seconds(90));
  const auto turn = *world.session.take();
  const TimePoint now = kStart + std::chrono::seconds(1000);
  world.session.on_sequence(turn, echo(world.session, turn), now);
  EXPECT_FALSE(world.session.renewal_due(now + std::chrono::seconds(29)));
  EXPECT_TRUE(world.session.renewal_due(now + std::chrono::seconds(30)));
}

TEST(Session, refusals_that_no_repetition_helps_are_passed_on) {
  for (const auto status : {v4::NFS4ERR_REQ_TOO_BIG, v4::NFS4ERR_TOO_MANY_OPS,
                            v4::NFS4ERR_REP_TOO_BIG, v4::NFS4ERR_SERVERFAULT}) {
    Established world;
    EXPECT_EQ(world.call(status), Fate::Refused);
    EXPECT_EQ(world.session.take()->sequence, 1u);
  }
}

}  // namespace
}  // namespace stag::nfs::session
