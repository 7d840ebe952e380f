// What was lost before a restart of the server is not reclaimed after it (RFC 8881 8.4.3).
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "testing/held_executor.h"
#include "testing/nfs/nfs4_restart_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4EdgeConditions : public Nfs4RestartServed {
 protected:
  // As the client does when its machine has restarted.
  static void start_anew(Nfs4Start& first) {
    const auto exchanged = first.exchange_id("a client", 2);
    const auto made =
        first.compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
                           first.session_args(exchanged.eir_clientid, exchanged.eir_sequenceid))});
    ASSERT_EQ(made.status, v4::NFS4_OK);
    first.act_as({exchanged.eir_clientid,
                  made.resarray[0].opcreate_session().csr_resok4().csr_sessionid, 0});
    ASSERT_EQ(first.reclaim_complete(), v4::NFS4_OK);
  }
};

// RFC 8881 8.4.3, the first edge condition: another client may have had the file since.
TEST_F(Nfs4EdgeConditions, a_client_that_an_administrator_revoked_something_of_reclaims_nothing) {
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  EXPECT_TRUE(first.revoke(opened_));
  EXPECT_EQ(first.create("new").status, v4::NFS4_OK) << "which is not recorded";
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4EdgeConditions, a_client_that_freed_the_revoked_stateid_is_recorded_with_its_next_open) {
  Nfs4Start& first = start();
  first.set_up_session();
  const Nfs4Start::Opened lost = first.create("lost");
  EXPECT_TRUE(first.revoke(lost));
  EXPECT_EQ(first.free_stateid(lost), v4::NFS4_OK);
  opened_ = first.create("file");
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

// As an administrator does, whose loop serves others meanwhile.
TEST_F(Nfs4EdgeConditions, an_administrator_that_revokes_is_told_when_it_is_done_or_cannot_be) {
  const auto worker = std::make_shared<HeldExecutor>(true);
  worker_ = worker;
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  const auto revoked = [&] {
    nfs4::Administration admin = first.nfs4_.administration();
    return first.loop_.run(
        admin.revoke({opened_.stateid.seqid, opened_.stateid.other}, first.loop_));
  };
  worker->full = true;
  EXPECT_EQ(revoked(), false);
  worker->full = false;
  break_records("DELETE");
  EXPECT_EQ(revoked(), false);
  repair_records();
  EXPECT_EQ(revoked(), true);
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4EdgeConditions, nothing_is_revoked_while_that_cannot_be_written) {
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  break_records("DELETE");
  EXPECT_FALSE(first.revoke(opened_));
  EXPECT_EQ(first.close(opened_), v4::NFS4_OK);
  repair_records();
  opened_ = first.create("file");
  EXPECT_TRUE(first.revoke(opened_));
}

TEST_F(Nfs4EdgeConditions, a_client_that_had_something_revoked_in_grace_reclaims_nothing_more) {
  Nfs4Start& second = restart_with_a_lock();
  second.set_up_session("a client", false);
  const Nfs4Start::Opened reclaimed = second.reclaim(opened_.handle);
  EXPECT_TRUE(second.revoke(reclaimed));
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
  Nfs4Start& third = start();
  third.set_up_session("a client", false);
  EXPECT_NE(third.reclaim(opened_.handle).status, v4::NFS4_OK);
}

TEST_F(Nfs4EdgeConditions, a_client_that_kept_a_delegation_until_it_was_revoked_reclaims_nothing) {
  Nfs4Start& first = start();
  Nfs4Start::Who holder = keep_a_delegation(first);
  pass_a_lease(first, holder);
  EXPECT_EQ(open_again(first), v4::NFS4_OK);
  first.act_as(holder);
  EXPECT_EQ(first.status_flags() & v4::SEQ4_STATUS_RECALLABLE_STATE_REVOKED,
            v4::SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4EdgeConditions, a_delegation_is_not_revoked_while_that_cannot_be_written) {
  Nfs4Start& first = start();
  Nfs4Start::Who holder = keep_a_delegation(first);
  break_records("DELETE");
  pass_a_lease(first, holder);
  EXPECT_EQ(open_again(first), v4::NFS4ERR_DELAY);
  repair_records();
  first.loop_.pass(std::chrono::seconds(2));
  EXPECT_EQ(open_again(first), v4::NFS4_OK);
}

// As many times as the worker takes, and gives back, the work.
TEST_F(Nfs4EdgeConditions, delegations_of_a_client_are_revoked_together_when_the_worker_has_time) {
  const auto worker = std::make_shared<HeldExecutor>(true);
  worker_ = worker;
  Nfs4Start& first = start();
  first.set_up_called_back();
  EXPECT_EQ(first.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(first.create("file").status, v4::NFS4_OK);
  EXPECT_EQ(first.create("second").status, v4::NFS4_OK);
  Nfs4Start::Who holder = first.myself();
  first.set_up_session("another");
  EXPECT_EQ(first.create("of another").status, v4::NFS4_OK);
  EXPECT_EQ(open_again(first), v4::NFS4ERR_DELAY);
  EXPECT_EQ(open_again(first, "second"), v4::NFS4ERR_DELAY);
  worker->at_once = false;
  pass_a_lease(first, holder);
  EXPECT_EQ(open_again(first), v4::NFS4ERR_DELAY);
  EXPECT_EQ(worker->held.size(), 2u) << "one for each";
  worker->give_all_back();
  first.loop_.pass(std::chrono::seconds(2));
  EXPECT_EQ(worker->held.size(), 2u);
  worker->run_all();
  worker->at_once = true;
  EXPECT_EQ(open_again(first), v4::NFS4_OK);
  EXPECT_EQ(open_again(first, "second"), v4::NFS4_OK);
}

// RFC 8881 8.4.3, the second edge condition.
TEST_F(Nfs4EdgeConditions,
       who_was_not_done_when_a_grace_period_ended_reclaims_nothing_in_the_next) {
  Nfs4Start& second = cut_off_after_a_reclaim();
  second.set_up_session("another");
  const Nfs4Start::Opened other = second.open(second.open_args("file", 3, false));
  EXPECT_EQ(second.lock(other, false), v4::NFS4_OK) << "it was not reclaimed";
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4EdgeConditions,
       a_client_that_sends_RECLAIM_COMPLETE_after_a_grace_period_reclaims_in_the_next) {
  Nfs4Start& second = cut_off_after_a_reclaim();
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

// One client has reclaimed its file, and is done while the end of the grace period is written.
class Nfs4DoneLate : public Nfs4EdgeConditions {
 protected:
  Nfs4DoneLate() { worker_ = worker; }

  Nfs4Start& start_to_be_done() {
    Nfs4Start& second = restart_with_a_lock();
    second.set_up_session("a client", false);
    reclaimed = second.reclaim(opened_.handle);
    EXPECT_EQ(reclaimed.status, v4::NFS4_OK);
    second.loop_.pass(kGraceTime / 2);
    second.status_flags();
    worker->at_once = false;
    second.loop_.pass(kGraceTime / 2);
    second.status_flags();
    EXPECT_EQ(worker->held.size(), 1u);
    return second;
  }
  // The server's write of the records waits for this other connection to the database.
  void is_done_meanwhile(Nfs4Start& second) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open((folder_.path() / "db").c_str(), &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    std::thread ending([&] { worker->run_all(); });
    while (recoveries_.back()->anybody_left()) std::this_thread::yield();
    EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
    sqlite3_close(other);
    ending.join();
    worker->at_once = true;
  }

  const std::shared_ptr<HeldExecutor> worker = std::make_shared<HeldExecutor>(true);
  Nfs4Start::Opened reclaimed;
};

TEST_F(Nfs4DoneLate, reclaims_after_the_next_restart) {
  Nfs4Start& second = start_to_be_done();
  is_done_meanwhile(second);
  EXPECT_FALSE(second.grace());
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

TEST_F(Nfs4DoneLate, reclaims_nothing_after_the_next_restart_where_it_has_closed_what_it_had) {
  Nfs4Start& second = start_to_be_done();
  EXPECT_EQ(second.close(reclaimed), v4::NFS4_OK);
  is_done_meanwhile(second);
  EXPECT_FALSE(second.grace());
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4DoneLate, is_not_waited_for_where_the_end_could_not_be_written) {
  Nfs4Start& second = start_to_be_done();
  break_records("DELETE");
  is_done_meanwhile(second);
  EXPECT_TRUE(second.grace());
  EXPECT_FALSE(recoveries_.back()->anybody_left());
  repair_records();
  second.loop_.pass(std::chrono::seconds(2));
  second.status_flags();
  EXPECT_FALSE(second.grace());
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

// It has a record of the start before, too.
TEST_F(Nfs4EdgeConditions, a_client_ended_in_grace_for_what_another_reclaimed_reclaims_no_more) {
  Nfs4Start& first = start();
  first.set_up_session("another");
  EXPECT_EQ(first.create("file").status, v4::NFS4_OK);
  first.set_up_session();
  opened_ = first.create("file");
  EXPECT_EQ(first.lock(opened_, false), v4::NFS4_OK);
  Nfs4Start& second = start();
  second.set_up_session("a client", false);
  const Nfs4Start::Opened mine = second.reclaim(opened_.handle);
  EXPECT_EQ(second.lock(mine, true), v4::NFS4_OK);
  second.set_up_session("another", false);
  const Nfs4Start::Opened theirs = second.reclaim(opened_.handle);
  second.lengthen_grace(3 * kGraceTime);
  for (int i = 0; i < 2; ++i) {
    second.loop_.pass(2 * kGraceTime / 3);
    second.status_flags();
  }
  EXPECT_EQ(second.lock(theirs, true), v4::NFS4_OK) << "whose lease has run out keeps nobody out";
  second.set_up_session("a client", false);
  ASSERT_TRUE(second.grace());
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
  Nfs4Start& third = start();
  third.set_up_session("a client", false);
  ASSERT_TRUE(third.grace());
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD) << "after a crash";
}

// A client in the way of another's claim has lapsed in a grace period, and is to be ended by the
// worker. It has still something to claim.
class Nfs4ReturningClient : public Nfs4EdgeConditions {
 protected:
  Nfs4ReturningClient() { worker_ = worker; }

  Nfs4Start& start_to_end_it() {
    Nfs4Start& first = start();
    first.set_up_session("another");
    EXPECT_EQ(first.create("file").status, v4::NFS4_OK);
    first.set_up_session();
    opened_ = first.create("file");
    EXPECT_EQ(first.lock(opened_, false), v4::NFS4_OK);
    unclaimed = first.create("unclaimed");
    Nfs4Start& second = start();
    second.set_up_session("a client", false);
    EXPECT_EQ(second.lock(second.reclaim(opened_.handle), true), v4::NFS4_OK);
    lapsed = second.myself();
    second.set_up_session("another", false);
    theirs = second.reclaim(opened_.handle);
    second.lengthen_grace(3 * kGraceTime);
    for (int i = 0; i < 2; ++i) {
      second.loop_.pass(2 * kGraceTime / 3);
      second.status_flags();
    }
    worker->at_once = false;
    EXPECT_EQ(second.lock(theirs, true), v4::NFS4ERR_DELAY);
    EXPECT_EQ(worker->held.size(), 1u);
    return second;
  }
  // It is asked for while nobody else runs the worker.
  void claims_on(Nfs4Start& second) {
    worker->at_once = true;
    EXPECT_NE(second.lock(theirs, true), v4::NFS4_OK) << "it has come back";
    second.act_as(lapsed);
    EXPECT_EQ(second.reclaim(unclaimed.handle).status, v4::NFS4_OK);
    Nfs4Start& third = start();
    third.set_up_session("a client", false);
    EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4_OK) << "after a crash";
    EXPECT_EQ(third.reclaim(unclaimed.handle).status, v4::NFS4_OK);
  }
  void comes_back(Nfs4Start& second) {
    const Nfs4Start::Who other = second.act_as(lapsed);
    second.status_flags();
    lapsed = second.act_as(other);
  }

  const std::shared_ptr<HeldExecutor> worker = std::make_shared<HeldExecutor>(true);
  Nfs4Start::Who lapsed;
  Nfs4Start::Opened theirs, unclaimed;
};

TEST_F(Nfs4ReturningClient, claims_on_if_it_comes_back_before_its_record_is_removed) {
  Nfs4Start& second = start_to_end_it();
  comes_back(second);
  worker->run_all();
  claims_on(second);
}

TEST_F(Nfs4ReturningClient, claims_on_if_it_comes_back_while_its_record_is_removed) {
  Nfs4Start& second = start_to_end_it();
  recovery::Recovery& records = *recoveries_.back();
  std::thread removing;
  // Has the disk as long as it runs.
  const auto needed = [&](state::ClientId) {
    if (removing.joinable()) return true;
    removing = std::thread([&] { worker->run_all(); });
    while (records.waiting() == 0) std::this_thread::yield();
    comes_back(second);
    return true;
  };
  records.remove_unneeded(needed);
  ASSERT_TRUE(removing.joinable());
  removing.join();
  claims_on(second);
}

// An administrator ends a client while the disk is busy, and something happens between the removal
// of its record and its end.
class Nfs4EndedByAdmin : public Nfs4EdgeConditions {
 protected:
  Nfs4EndedByAdmin() { worker_ = worker; }
  ~Nfs4EndedByAdmin() override {
    worker->run_all();
    for (const auto& each : starts_) each->loop_.drain();
  }

  // The client that calls, who has a record. `meanwhile` begins when the removal waits for the disk
  // alone.
  void end(Nfs4Start& at, UniqueFunction<void()> meanwhile) {
    worker->at_once = false;
    EndedByAdmin result = EndedByAdmin::Busy;
    at.nfs4_.administration().expire(at.clientid_, at.loop_.now(),
                                     [&](EndedByAdmin outcome) { result = outcome; });
    ASSERT_EQ(worker->held.size(), 1u);
    recovery::Recovery& records = *recoveries_.back();
    std::thread ending;
    const auto needed = [&](state::ClientId) {
      if (ending.joinable()) return true;
      ending = std::thread([&] { worker->run_all(); });
      while (records.waiting() == 0) std::this_thread::yield();
      meanwhile();
      return true;
    };
    records.remove_unneeded(needed);
    ASSERT_TRUE(ending.joinable());
    ending.join();
    EXPECT_EQ(result, EndedByAdmin::Yes);
  }
  static Op reclaim_complete_op() {
    return op(v4::OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, v4::RECLAIM_COMPLETE4args{});
  }

  const std::shared_ptr<HeldExecutor> worker = std::make_shared<HeldExecutor>(true);
  std::optional<v4::COMPOUND4res> results;
};

// It had reclaimed the file, was not done when the grace period ended, and says so at last.
TEST_F(Nfs4EndedByAdmin, is_not_recorded_by_a_request_in_progress) {
  Nfs4Start& second = cut_off_after_a_reclaim();
  const Nfs4Start::Who cut_off = second.myself();
  second.set_up_session("another");
  EXPECT_EQ(second.create("of another").status, v4::NFS4_OK);
  second.act_as(cut_off);
  end(second, [&] { second.begin(reclaim_complete_op(), results); });
  // Killed before the request goes on.
  Nfs4Start& third = start();
  worker->at_once = true;
  ASSERT_TRUE(third.grace());
  third.set_up_session("a client", false);
  EXPECT_EQ(third.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4EndedByAdmin, claims_nothing_as_a_new_incarnation) {
  Nfs4Start& second = restart_of_two();
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4_OK);
  Nfs4Start::Who anew{};
  end(second, [&] {
    const auto exchanged = second.exchange_id("a client", 2);
    const auto made = second.compound(
        {op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
            second.session_args(exchanged.eir_clientid, exchanged.eir_sequenceid))});
    ASSERT_EQ(made.status, v4::NFS4_OK);
    anew = {exchanged.eir_clientid, made.resarray[0].opcreate_session().csr_resok4().csr_sessionid,
            0};
  });
  worker->at_once = true;
  second.act_as(anew);
  ASSERT_TRUE(second.grace());
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_RECLAIM_BAD);
}

// It is recorded for a claim when the grace period ends, and says that it is done before it hears
// that it is not recorded.
TEST_F(Nfs4EndedByAdmin, or_cut_off_while_it_is_recorded_is_not_taken_for_recorded) {
  Nfs4Start& second = restart_of_two();
  second.set_up_session("another", false);
  const Nfs4Start::Who another = second.myself();
  second.set_up_session("a client", false);
  worker->at_once = false;
  v4::OPEN4args args = second.open_args("", v4::OPEN4_SHARE_ACCESS_BOTH, false);
  args.claim.claim = v4::CLAIM_PREVIOUS;
  args.claim.delegate_type() = v4::OPEN_DELEGATE_NONE;
  std::optional<v4::COMPOUND4res> reclaimed;
  second.begin(op(v4::OP_OPEN, &Op::opopen, std::move(args)), reclaimed, {putfh(opened_.handle)});
  ASSERT_EQ(worker->held.size(), 1u);
  Executor::Job recording = std::move(worker->held.front());
  worker->held.clear();
  const Nfs4Start::Who client = second.act_as(another);
  // The claim is waited for, but not for ever.
  for (Duration passed{}; passed <= kGraceTime + std::chrono::minutes(5);
       passed += kGraceTime / 2) {
    second.loop_.pass(kGraceTime / 2);
    second.status_flags();
  }
  ASSERT_EQ(worker->held.size(), 1u) << "which ends the grace period";
  worker->run_all();
  ASSERT_FALSE(second.grace());
  recording.work();
  std::optional<v4::COMPOUND4res> done;
  second.act_as(client);
  second.begin(reclaim_complete_op(), done);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status, v4::NFS4_OK);
  recording.work = {};
  recording.deliver(recording.context, std::move(recording.done));
  worker->at_once = true;
  second.loop_.drain();
  EXPECT_TRUE(reclaimed.has_value());
  opened_ = second.create("new");
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

TEST_F(Nfs4EdgeConditions,
       a_client_that_was_not_done_in_its_own_grace_period_has_none_in_that_of_others) {
  start("other").set_up_session("of another server");
  EXPECT_EQ(starts_.back()->create("elsewhere").status, v4::NFS4_OK);
  Nfs4Start& second = cut_off_after_a_reclaim();
  auto lost = recovery::Database::open_ended(folder_.path() / "other");
  ASSERT_TRUE(lost.ok());
  ASSERT_TRUE(second.adopt(**lost).ok());
  ASSERT_TRUE(second.grace());
  EXPECT_NE(second.reclaim(opened_.handle).status, v4::NFS4_OK);
}

// The record of a client that started anew, and cannot be removed just then, is of an incarnation
// that nobody ends any more.
TEST_F(Nfs4EdgeConditions, who_lost_something_reclaims_nothing_by_the_record_of_an_earlier_self) {
  Nfs4Start& first = start();
  first.set_up_session();
  opened_ = first.create("file");
  break_records("DELETE");
  start_anew(first);
  repair_records();
  opened_ = first.create("file");
  EXPECT_TRUE(first.revoke(opened_));
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs4EdgeConditions,
       a_record_that_could_not_be_removed_goes_when_it_can_though_nobody_calls) {
  const auto worker = std::make_shared<HeldExecutor>(true);
  worker_ = worker;
  Nfs4Start& first = start();
  first.nfs4_.watch_leases(first.loop_);
  for (const bool refused : {true, false}) {
    first.set_up_session();
    ASSERT_EQ(first.close(first.create("file")), v4::NFS4_OK);
    ASSERT_EQ(first.destroy_session(), v4::NFS4_OK);
    worker->full = refused;
    if (!refused) break_records("DELETE");
    ASSERT_EQ(first.destroy_clientid(), v4::NFS4_OK);
    first.loop_.pass(std::chrono::seconds(3));
    EXPECT_TRUE(recoveries_.back()->unremoved());
    if (!refused) repair_records();
    worker->full = false;
    first.loop_.pass(std::chrono::seconds(1));
    EXPECT_FALSE(recoveries_.back()->unremoved());
  }
  EXPECT_FALSE(start().grace());
}

}  // namespace
}  // namespace stag::nfs::nfs4
