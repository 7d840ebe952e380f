// What clients of version 4 find after a restart of the server (RFC 8881 8.4.2).
#include "base/reason.h"
#include "testing/held_executor.h"
#include "testing/nfs/nfs4_restart_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4Restart : public Nfs4RestartServed {};

TEST_F(Nfs4Restart, there_is_no_grace_period_without_records) {
  EXPECT_FALSE(start().grace());
  starts_.back()->set_up_session();
  EXPECT_EQ(starts_.back()->create("file").status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, a_client_that_only_looked_leaves_no_record) {
  start().set_up_session("a client", false);
  EXPECT_FALSE(start().grace());
}

// RFC 8881 8.4.2.1: as `stag ls` leaves one that is ended by a signal. It has nothing to reclaim.
TEST_F(Nfs4Restart, a_client_that_was_done_and_opened_nothing_leaves_no_record) {
  start().set_up_session();
  Nfs4Start& second = start();
  EXPECT_FALSE(second.grace());
  second.set_up_session("another");
  EXPECT_EQ(second.create("file").status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, a_client_that_was_done_is_recorded_before_its_first_open) {
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  Nfs4Start& second = start();
  EXPECT_TRUE(second.grace());
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4_OK);
}

// It was done without a record, at a start that had a grace period for others.
TEST_F(Nfs4Restart, a_client_that_held_nothing_reclaims_nothing_after_a_second_restart_either) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("another");
  Nfs4Start& third = start();
  third.set_up_session("another", false);
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
  third.set_up_session("a client", false);
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, a_client_whose_lease_ran_out_when_it_held_nothing_any_more_leaves_no_record) {
  Nfs4Start& first = start();
  first.set_up_session();
  const Nfs4Start::Opened opened = first.create("file");
  ASSERT_EQ(first.close(opened), v4::NFS4_OK);
  first.loop_.pass(2 * kGraceTime);
  first.set_up_session("another");
  EXPECT_FALSE(start().grace());
}

TEST_F(Nfs4Restart, an_orderly_end_leaves_records_of_those_alone_who_hold_something) {
  Nfs4Start& first = start();
  for (const char* owner : {"anna", "bert"}) {
    first.set_up_session(owner);
    opened_ = first.create(owner);
    ASSERT_EQ(opened_.status, v4::NFS4_OK);
  }
  ASSERT_EQ(first.close(opened_), v4::NFS4_OK);
  first.end_in_order();
  Nfs4Start& second = start();
  ASSERT_TRUE(second.grace());
  second.set_up_session("bert", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  ASSERT_TRUE(second.grace());
  second.set_up_session("anna");
  EXPECT_FALSE(second.grace());
}

TEST_F(Nfs4Restart,
       an_orderly_end_that_leaves_nobody_with_anything_is_followed_by_no_grace_period) {
  Nfs4Start& first = start();
  first.set_up_session();
  ASSERT_EQ(first.close(first.create("file")), v4::NFS4_OK);
  first.end_in_order();
  EXPECT_FALSE(start().grace());
}

// RFC 8881 8.4.2.1: it may still claim at the next start what it had at the first.
TEST_F(Nfs4Restart, an_orderly_end_in_grace_leaves_records_of_those_who_were_not_done) {
  Nfs4Start& first = start();
  for (const char* owner : {"anna", "bert", "carl"}) {
    first.set_up_session(owner);
    opened_ = first.create(owner);
    ASSERT_EQ(opened_.status, v4::NFS4_OK);
  }
  Nfs4Start& second = start();
  second.set_up_session("anna");
  second.set_up_session("bert", false);
  second.end_in_order();
  Nfs4Start& third = start();
  ASSERT_TRUE(third.grace());
  third.set_up_session("carl", false);
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4_OK);
  EXPECT_EQ(third.reclaim_complete(), v4::NFS4_OK);
  ASSERT_TRUE(third.grace());
  third.set_up_session("bert");
  EXPECT_FALSE(third.grace());
}

TEST_F(Nfs4Restart, an_open_reclaimed_before_an_orderly_end_in_grace_is_reclaimed_again) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("a client", false);
  ASSERT_EQ(second.reclaim(opened_.handle).status, v4::NFS4_OK);
  ASSERT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  second.end_in_order();
  Nfs4Start& third = start();
  third.set_up_session("a client", false);
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, an_orderly_end_whose_records_cannot_be_written_leaves_them) {
  Nfs4Start& first = start();
  first.set_up_session();
  ASSERT_EQ(first.close(first.create("file")), v4::NFS4_OK);
  break_records("DELETE");
  first.end_in_order();
  EXPECT_TRUE(start().grace());
}

TEST_F(Nfs4Restart, names_of_the_time_before_are_stale_client_IDs_bad_sessions_and_bad_stateids) {
  Nfs4Start& first = start();
  first.set_up_session();
  const Nfs4Start::Opened opened = first.create("file");
  Nfs4Start& second = start();
  second.clientid_ = first.clientid_;
  EXPECT_EQ(second
                .compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
                              second.session_args(first.clientid_, 2))})
                .status,
            v4::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(second.run({putrootfh()}).status, v4::NFS4ERR_BADSESSION);
  second.set_up_session("another", false);
  EXPECT_NE(second.clientid_, first.clientid_);
  EXPECT_EQ(second.lock(opened, true), v4::NFS4ERR_RECLAIM_BAD);
  second.loop_.pass(kGraceTime);
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(second.lock(opened, false), v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Restart, a_recorded_client_is_told_until_RECLAIM_COMPLETE_that_it_must_reclaim) {
  Nfs4Start& first = start();
  first.set_up_session();
  EXPECT_EQ(first.status_flags(), 0u);
  opened_ = first.create("file");
  Nfs4Start& second = start();
  second.set_up_session("a client", false);
  EXPECT_EQ(second.status_flags(), v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED);
  ASSERT_EQ(second.reclaim(opened_.handle).status, v4::NFS4_OK);
  EXPECT_EQ(second.status_flags(), v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED);
  ASSERT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(second.status_flags(), 0u);
  second.set_up_session("another", false);
  EXPECT_EQ(second.status_flags(), 0u) << "it had nothing";
}

// As what tar or git makes: for writing, and read-only for everybody else, its owner later on
// included.
TEST_F(Nfs4Restart, an_open_is_reclaimed_by_its_owner_whatever_the_mode_is_now) {
  constexpr std::uint32_t kOwner = 1000;
  Nfs4Start& first = start();
  const vfs::Credentials root{0, 0, {}};
  const vfs::CallerContext administrator{first.loop_, root};
  const auto change = [&](const vfs::Handle& object, std::uint32_t mode) {
    vfs::SetAttributes changes;
    changes.uid = kOwner;
    changes.mode = mode;
    return now(first, store_->set_attributes(administrator, object, changes, std::nullopt)).ok();
  };
  ASSERT_TRUE(change(store_->root(), 0755));
  first.as(kOwner, kOwner);
  first.set_up_session();
  const Nfs4Start::Opened opened = first.create("file");
  ASSERT_EQ(opened.status, v4::NFS4_OK);
  const auto found = now(first, store_->lookup(administrator, store_->root(), "file"));
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE(change(found->node.handle, 0444));
  Nfs4Start& second = start();
  second.as(kOwner, kOwner);
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened.handle).status, v4::NFS4_OK);
  ASSERT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  second.loop_.pass(kGraceTime);
  EXPECT_EQ(second.open(second.open_args("file", v4::OPEN4_SHARE_ACCESS_WRITE, false)).status,
            v4::NFS4ERR_ACCESS)
      << "who opens it anew is asked";
}

TEST_F(Nfs4Restart, a_recorded_client_reclaims_its_opens_and_locks) {
  Nfs4Start& second = restart_with_a_lock();
  EXPECT_TRUE(second.grace());
  second.set_up_session("a client", false);
  const Nfs4Start::Opened reclaimed = second.reclaim(opened_.handle);
  ASSERT_EQ(reclaimed.status, v4::NFS4_OK);
  EXPECT_EQ(second.lock(reclaimed, true), v4::NFS4_OK);
}

// RFC 8881 10.2.1: it holds locks that the server does not know.
TEST_F(Nfs4Restart, a_delegation_that_is_claimed_is_given_again) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_called_back();
  ASSERT_EQ(second.reclaim(opened_.handle, v4::OPEN_DELEGATE_WRITE).status, v4::NFS4_OK);
  ASSERT_EQ(second.delegation_.delegation_type, v4::OPEN_DELEGATE_WRITE);
  EXPECT_FALSE(second.delegation_.write().recall);
  const v4::stateid4 given = second.delegation_.write().stateid;
  ASSERT_EQ(second.reclaim(opened_.handle, v4::OPEN_DELEGATE_WRITE).status, v4::NFS4_OK);
  EXPECT_EQ(second.delegation_.write().stateid, given) << "there is one";
  ASSERT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  second.set_up_session("another");
  EXPECT_EQ(second.open(second.open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, false)).status,
            v4::NFS4ERR_DELAY);
  ASSERT_EQ(second.called_.asked.size(), 1u);
  EXPECT_EQ(second.called_.recall(0).stateid, given);
}

// RFC 8881 18.16.3: it is to be given back, which programs of the server do not wait for long.
TEST_F(Nfs4Restart, a_delegation_lets_its_holder_open_and_lock_in_grace) {
  Nfs4Start& second = restart_of_two();
  second.set_up_called_back();
  ASSERT_EQ(second.reclaim(opened_.handle, v4::OPEN_DELEGATE_WRITE).status, v4::NFS4_OK);
  const v4::stateid4 given = second.delegation_.write().stateid;
  const auto claimed = [&] {
    return second.open_by_delegation(opened_.handle, given, v4::OPEN4_SHARE_ACCESS_BOTH);
  };
  EXPECT_EQ(claimed().status, v4::NFS4ERR_GRACE) << "before RECLAIM_COMPLETE";
  ASSERT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  ASSERT_TRUE(second.grace());
  const Nfs4Start::Opened opened = claimed();
  ASSERT_EQ(opened.status, v4::NFS4_OK);
  EXPECT_EQ(second.lock(opened, false), v4::NFS4_OK);
  EXPECT_EQ(open_again(second), v4::NFS4ERR_GRACE) << "it is not claimed by the delegation";
  ASSERT_EQ(second
                .run({putfh(opened_.handle),
                      op(v4::OP_DELEGRETURN, &Op::opdelegreturn, v4::DELEGRETURN4args{given})})
                .status,
            v4::NFS4_OK);
  EXPECT_NE(claimed().status, v4::NFS4_OK);
  EXPECT_EQ(second.lock(opened, false), v4::NFS4ERR_GRACE);
}

// What others had as well, they may still claim.
TEST_F(Nfs4Restart, a_delegation_for_reading_lets_its_holder_only_read_in_grace) {
  Nfs4Start& second = restart_of_two();
  second.set_up_called_back();
  ASSERT_EQ(second.reclaim(opened_.handle, v4::OPEN_DELEGATE_READ).status, v4::NFS4_OK);
  const v4::stateid4 given = second.delegation_.read().stateid;
  ASSERT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  ASSERT_TRUE(second.grace());
  const auto claimed = [&](std::uint32_t access) {
    return second.open_by_delegation(opened_.handle, given, access);
  };
  EXPECT_EQ(claimed(v4::OPEN4_SHARE_ACCESS_BOTH).status, v4::NFS4ERR_GRACE);
  const Nfs4Start::Opened opened = claimed(v4::OPEN4_SHARE_ACCESS_READ);
  ASSERT_EQ(opened.status, v4::NFS4_OK);
  EXPECT_EQ(second.lock(opened, false, v4::WRITE_LT), v4::NFS4ERR_GRACE);
  EXPECT_EQ(second.lock(opened, false, v4::READ_LT), v4::NFS4_OK);
}

TEST_F(Nfs4Restart, a_delegation_that_could_not_be_recalled_is_given_again_as_recalled) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_called_back();
  second.called_.answers = false;
  ASSERT_EQ(second.reclaim(opened_.handle, v4::OPEN_DELEGATE_READ).status, v4::NFS4_OK);
  ASSERT_EQ(second.delegation_.delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_TRUE(second.delegation_.read().recall);
}

TEST_F(Nfs4Restart, a_delegation_beyond_the_limit_is_given_again_as_recalled) {
  states_.delegations = 0;
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_called_back();
  ASSERT_EQ(second.reclaim(opened_.handle, v4::OPEN_DELEGATE_READ).status, v4::NFS4_OK);
  ASSERT_EQ(second.delegation_.delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_TRUE(second.delegation_.read().recall);
}

TEST_F(Nfs4Restart, a_delegation_of_no_type_is_not_claimed) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_called_back();
  EXPECT_EQ(second.reclaim(opened_.handle, v4::OPEN_DELEGATE_NONE_EXT).status, v4::NFS4ERR_INVAL);
}

TEST_F(Nfs4Restart, another_client_gets_GRACE_and_reclaims_nothing) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("another");
  EXPECT_EQ(second.create("new").status, v4::NFS4ERR_GRACE);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_NO_GRACE);
  second.set_up_session("a third", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4Restart, an_open_that_is_refused_in_grace_makes_no_file) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("another");
  EXPECT_EQ(second.create("new").status, v4::NFS4ERR_GRACE);
  const auto looked = second.run({putrootfh(), lookup("data"), lookup("new")});
  EXPECT_EQ(looked.status, v4::NFS4ERR_NOENT);
}

TEST_F(Nfs4Restart, another_principal_cannot_reclaim_what_an_owner_had) {
  Nfs4Start& second = restart_with_a_lock();
  second.as(1000, 1000);
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4Restart, grace_ends_early_when_all_recorded_clients_are_done) {
  Nfs4Start& first = start();
  first.set_up_session("anna");
  EXPECT_EQ(first.create("of anna").status, v4::NFS4_OK);
  first.set_up_session("bert");
  EXPECT_EQ(first.create("of bert").status, v4::NFS4_OK);
  Nfs4Start& second = start();
  second.set_up_session("anna");
  EXPECT_TRUE(second.grace());
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4ERR_COMPLETE_ALREADY);
  EXPECT_TRUE(second.grace());
  second.set_up_session("bert");
  EXPECT_FALSE(second.grace());
  EXPECT_EQ(second.create("new").status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, grace_ends_with_its_time_and_then_nothing_is_reclaimed) {
  Nfs4Start& second = restart_with_a_lock();
  second.loop_.pass(kGraceTime);
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_NO_GRACE);
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(second.create("file").status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, a_client_that_missed_a_grace_period_does_not_reclaim_in_the_next) {
  Nfs4Start& second = restart_with_a_lock();
  second.loop_.pass(kGraceTime);
  second.set_up_session("another");
  EXPECT_EQ(second.create("file").status, v4::NFS4_OK);
  Nfs4Start& third = start();
  third.set_up_session("a client", false);
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4Restart, a_crash_in_grace_repeats_it_for_everybody) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4_OK);
  Nfs4Start& third = start();
  third.set_up_session("a client", false);
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, DESTROY_CLIENTID_leaves_nothing_to_reclaim) {
  Nfs4Start& first = start();
  first.set_up_session();
  ASSERT_EQ(first.close(first.create("file")), v4::NFS4_OK);
  EXPECT_EQ(first.destroy_session(), v4::NFS4_OK);
  EXPECT_EQ(first.destroy_clientid(), v4::NFS4_OK);
  EXPECT_FALSE(start().grace());
}

TEST_F(Nfs4Restart, DESTROY_CLIENTID_in_grace_ends_it_like_RECLAIM_COMPLETE) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("a client", false);
  EXPECT_EQ(second.destroy_session(), v4::NFS4_OK);
  EXPECT_TRUE(second.grace());
  EXPECT_EQ(second.destroy_clientid(), v4::NFS4_OK);
  EXPECT_FALSE(second.grace());
}

TEST_F(Nfs4Restart, a_client_whose_lapsed_open_went_to_another_cannot_reclaim_it) {
  Nfs4Start& first = start_with_a_lapsed_denial();
  EXPECT_EQ(first.create("file").status, v4::NFS4_OK);
  Nfs4Start& second = start();
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4Restart, a_lapsed_client_keeps_what_it_has_while_that_cannot_be_written) {
  Nfs4Start& first = start_with_a_lapsed_denial();
  break_records("DELETE");
  EXPECT_EQ(first.create("file").status, v4::NFS4ERR_DELAY);
  repair_records();
  EXPECT_EQ(first.create("file").status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, a_WRITE_that_a_lapsed_client_denies_is_DELAY_while_its_end_cannot_be_written) {
  Nfs4Start& first = start_with_a_lapsed_denial();
  break_records("DELETE");
  const v4::stateid4 anonymous{};
  const auto write = [&] {
    return first
        .run({putfh(opened_.handle), op(v4::OP_WRITE, &Op::opwrite, {anonymous, 0, {}, {}})})
        .status;
  };
  EXPECT_EQ(write(), v4::NFS4ERR_DELAY);
  repair_records();
  EXPECT_EQ(write(), v4::NFS4_OK);
}

TEST_F(Nfs4Restart, why_a_lapsed_client_was_ended_is_told_though_its_record_stood_in_the_way) {
  Nfs4Start& first = start_with_a_lapsed_denial();
  break_records("DELETE");
  EXPECT_EQ(first.create("file").status, v4::NFS4ERR_DELAY);
  repair_records();
  static std::string told;
  told.clear();
  set_trace_sink([](Reason reason, std::string_view, std::string_view detail) {
    if (reason == Reason::Nfs4CourtesyEnded) told += detail;
  });
  first.loop_.pass(std::chrono::seconds(2));
  first.status_flags();
  set_trace_sink(nullptr);
  EXPECT_NE(told.find("somebody else wants what it held"), std::string::npos) << told;
}

TEST_F(Nfs4Restart, a_client_that_cannot_be_recorded_opens_nothing_and_is_told_at_once) {
  Nfs4Start& first = start();
  break_records("INSERT");
  first.set_up_session("a client", false);
  EXPECT_EQ(first.reclaim_complete(), v4::NFS4_OK) << "it has nothing that were to be recorded";
  EXPECT_EQ(first.create("file").status, v4::NFS4ERR_SERVERFAULT);
  repair_records();
  EXPECT_EQ(first.create("file").status, v4::NFS4_OK);
}

TEST_F(Nfs4Restart, grace_goes_on_while_its_end_cannot_be_written) {
  Nfs4Start& second = restart_with_a_lock();
  break_records("DELETE");
  second.loop_.pass(kGraceTime);
  second.set_up_session("another");
  EXPECT_EQ(second.create("file").status, v4::NFS4ERR_GRACE);
  repair_records();
  second.loop_.pass(std::chrono::seconds(10));
  EXPECT_EQ(second.create("file").status, v4::NFS4_OK);
}

// The worker is to write the end of the grace period, and has no time for it.
class Nfs4EndUnwritten : public Nfs4RestartServed {
 protected:
  Nfs4EndUnwritten() { worker_ = worker; }
  Nfs4Start& start_until_the_end() {
    Nfs4Start& second = restart_with_a_lock();
    second.set_up_session("another");
    second.loop_.pass(kGraceTime / 2);
    second.status_flags();
    worker->at_once = false;
    return second;
  }
  static void pass_the_end(Nfs4Start& second) {
    second.loop_.pass(kGraceTime / 2);
    second.status_flags();
    EXPECT_TRUE(second.grace());
  }
  bool ends_with_time_for_it(Nfs4Start& second) {
    worker->full = false;
    worker->at_once = true;
    second.loop_.pass(std::chrono::seconds(10));
    second.status_flags();
    return !second.grace();
  }
  const std::shared_ptr<HeldExecutor> worker = std::make_shared<HeldExecutor>(true);
};

TEST_F(Nfs4EndUnwritten, is_tried_again_where_the_worker_refused_it) {
  Nfs4Start& second = start_until_the_end();
  worker->full = true;
  pass_the_end(second);
  EXPECT_TRUE(ends_with_time_for_it(second));
}

TEST_F(Nfs4EndUnwritten, is_tried_again_where_the_worker_took_it_and_gave_it_up) {
  Nfs4Start& second = start_until_the_end();
  pass_the_end(second);
  EXPECT_EQ(worker->held.size(), 1u);
  worker->give_all_back();
  EXPECT_TRUE(second.grace());
  EXPECT_TRUE(ends_with_time_for_it(second));
}

TEST_F(Nfs4Restart, a_client_that_an_administrator_ended_reclaims_nothing) {
  Nfs4Start& first = start();
  first.set_up_session();
  ASSERT_EQ(first.create("file").status, v4::NFS4_OK);
  EXPECT_EQ(first.end_by_admin(), EndedByAdmin::Yes);
  EXPECT_FALSE(start().grace());
}

TEST_F(Nfs4Restart, an_administrator_is_told_that_a_record_cannot_be_removed_and_the_client_stays) {
  Nfs4Start& first = start();
  first.set_up_session();
  ASSERT_EQ(first.create("file").status, v4::NFS4_OK);
  break_records("DELETE");
  EXPECT_EQ(first.end_by_admin(), EndedByAdmin::Failed);
  EXPECT_EQ(first.create("other").status, v4::NFS4_OK);
  repair_records();
  EXPECT_EQ(first.end_by_admin(), EndedByAdmin::Yes);
}

TEST_F(Nfs4Restart, nobody_waits_for_the_claims_of_a_client_that_an_administrator_ended) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("a client", false);
  ASSERT_TRUE(second.grace());
  EXPECT_EQ(second.end_by_admin(), EndedByAdmin::Yes);
  EXPECT_FALSE(second.grace());
}

TEST_F(Nfs4Restart,
       nobody_waits_for_the_claims_of_an_adopted_one_that_was_ended_before_it_claimed) {
  Nfs4Start& first = start();
  first.set_up_session();
  EXPECT_EQ(first.create("file").status, v4::NFS4_OK);
  Nfs4Start& other = start("other");
  other.set_up_session();
  adopt_at(other);
  ASSERT_TRUE(other.grace());
  EXPECT_EQ(other.end_by_admin(), EndedByAdmin::Yes);
  EXPECT_FALSE(other.grace());
}

TEST_F(Nfs4Restart, a_client_of_a_lost_server_reclaims_where_it_was_adopted) {
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  EXPECT_EQ(first.lock(opened_, false), v4::NFS4_OK);
  Nfs4Start& other = start("other");
  other.set_up_session("another");
  EXPECT_EQ(other.create("new").status, v4::NFS4_OK);
  adopt_at(other);
  EXPECT_EQ(other.create("newer").status, v4::NFS4ERR_GRACE);
  other.set_up_session("a client", false);
  const Nfs4Start::Opened reclaimed = other.reclaim(opened_.handle);
  ASSERT_EQ(reclaimed.status, v4::NFS4_OK);
  EXPECT_EQ(other.lock(reclaimed, true), v4::NFS4_OK);
  EXPECT_EQ(other.reclaim_complete(), v4::NFS4_OK);
  EXPECT_FALSE(other.grace());
  other.set_up_session("a third");
  const Nfs4Start::Opened conflicting = other.open(other.open_args("file", 3, false));
  ASSERT_EQ(conflicting.status, v4::NFS4_OK);
  EXPECT_EQ(other.lock(conflicting, false), v4::NFS4ERR_DENIED);
}

TEST_F(Nfs4Restart, a_lock_that_somebody_else_has_by_now_is_not_reclaimed_and_the_log_says_so) {
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  EXPECT_EQ(first.lock(opened_, false), v4::NFS4_OK);
  Nfs4Start& other = start("other");
  other.set_up_session("another");
  const Nfs4Start::Opened conflicting = other.open(other.open_args("file", 3, false));
  ASSERT_EQ(other.lock(conflicting, false), v4::NFS4_OK);
  const std::string holder = std::to_string(other.clientid_);
  adopt_at(other);
  other.set_up_session("a client", false);
  const Nfs4Start::Opened reclaimed = other.reclaim(opened_.handle);
  ASSERT_EQ(reclaimed.status, v4::NFS4_OK);
  static std::string told;
  told.clear();
  set_trace_sink([](Reason reason, std::string_view, std::string_view detail) {
    if (reason == Reason::ReclaimRefused) told += detail;
  });
  EXPECT_EQ(other.lock(reclaimed, true), v4::NFS4ERR_RECLAIM_CONFLICT);
  set_trace_sink(nullptr);
  EXPECT_TRUE(told.starts_with("client " + std::to_string(other.clientid_) + ", export /data, xid"))
      << told;
  EXPECT_TRUE(told.ends_with(": a lock of bytes 0 to 9; client " + holder + " has bytes 0 to 9"))
      << told;
}

// Its owner is the same at both, so it is one client here, which was done long ago.
TEST_F(Nfs4Restart, a_client_of_both_servers_reclaims_once_too) {
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  Nfs4Start& other = start("other");
  other.set_up_session();
  EXPECT_EQ(other.reclaim_complete(), v4::NFS4ERR_COMPLETE_ALREADY);
  EXPECT_EQ(other.reclaim(opened_.handle).status, v4::NFS4ERR_NO_GRACE);
  adopt_at(other);
  EXPECT_EQ(other.create("new").status, v4::NFS4ERR_GRACE);
  EXPECT_EQ(other.reclaim(opened_.handle).status, v4::NFS4_OK);
  EXPECT_EQ(other.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(other.reclaim_complete(), v4::NFS4ERR_COMPLETE_ALREADY);
  EXPECT_FALSE(other.grace());
  EXPECT_EQ(other.create("new").status, v4::NFS4_OK);
}

// RFC 8881 8.4.2.1, 2.10.5: else its clients reclaim nothing, or take two servers for one.
TEST_F(Nfs4Restart, servers_of_one_scope_are_not_the_same_server) {
  const auto identity = [](Nfs4Start& of) {
    const auto told = of.exchange_id("a client");
    const Buffer major = told.eir_server_owner.so_major_id.flatten();
    const Buffer scope = told.eir_server_scope.flatten();
    return std::pair(std::vector(major.bytes().begin(), major.bytes().end()),
                     std::vector(scope.bytes().begin(), scope.bytes().end()));
  };
  const auto [first, scope] = identity(start());
  const auto [other, same_scope] = identity(start("other"));
  EXPECT_NE(other, first);
  EXPECT_EQ(same_scope, scope);
  EXPECT_EQ(identity(start()), std::pair(first, scope)) << "after a restart";
}

// RFC 7862 15.3: leave to copy is not reclaimed; the client asks again by the open that it has
// reclaimed.
TEST_F(Nfs4Restart, a_copy_stateid_is_of_its_start_alone) {
  const auto copy_stateid = [](Nfs4Start& at, const Nfs4Start::Opened& file) {
    v4::COPY_NOTIFY4args args;
    args.cna_src_stateid = file.stateid;
    const Op notify = op(v4::OP_COPY_NOTIFY, &Op::opoffload_notify, std::move(args));
    const auto noticed = at.compound({at.sequence(), putfh(file.handle), notify}, 2);
    EXPECT_EQ(noticed.status, v4::NFS4_OK);
    v4::COPY_NOTIFY4res results = noticed.resarray.back().opcopy_notify();
    return results.resok4().cnr_stateid;
  };
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  const v4::stateid4 before = copy_stateid(first, opened_);
  Nfs4Start& second = start();
  second.set_up_session("a client", false);
  const v4::stateid4 after = copy_stateid(second, second.reclaim(opened_.handle));
  EXPECT_NE(after, before);
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  const auto read = [&](const v4::stateid4& stateid) {
    return second.run({putfh(opened_.handle), Nfs4Start::read_op(stateid, 0, 10)}).status;
  };
  EXPECT_EQ(read(before), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(read(after), v4::NFS4_OK);
}

}  // namespace
}  // namespace stag::nfs::nfs4
