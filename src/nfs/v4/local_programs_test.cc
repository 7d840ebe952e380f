// Files that programs of the server's machine use, too: their leases and locks are in the store.
#include <algorithm>
#include <cstdlib>

#include "nfs/v4/administration.h"
#include "testing/nfs/nfs40_fixture.h"
#include "testing/nfs/nfs4_delegations_fixture.h"
#include "testing/nfs/store_with_programs.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

class Nfs4LocalPrograms : public Nfs4DelegationsServed {
 protected:
  Nfs4LocalPrograms() {
    ExportOptions open;
    open.root_squash = false;
    Exports exports;
    STAG_CHECK(exports.add(1, {"/data", programs_, open}).ok());
    context_.exports.replace(std::move(exports));
  }
  v4::open_delegation_type4 kind_given(std::uint32_t access) {
    const v4::open_delegation4 given = open_for(access);
    holder_ = now_acting();
    return given.delegation_type;
  }

  const std::shared_ptr<StoreWithPrograms> programs_ = std::make_shared<StoreWithPrograms>(store_);
};

TEST_F(Nfs4LocalPrograms, are_kept_waiting_while_a_file_is_delegated) {
  const v4::open_delegation4 read = open_for(kForReading);
  ASSERT_EQ(read.delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_EQ(programs_->kinds, std::vector{vfs::LeaseKind::Read});
  EXPECT_EQ(programs_->leases, 1);
  EXPECT_EQ(run(return_ops(read.read().stateid)).status, v4::NFS4_OK);
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(programs_->kinds.back(), vfs::LeaseKind::Write);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4LocalPrograms, keep_a_file_that_they_have_open_from_being_delegated) {
  programs_->refusal = vfs::Status::Delay;
  const v4::open_delegation4 none = open_for(kForReading, v4::OPEN4_SHARE_ACCESS_WANT_ANY_DELEG);
  ASSERT_EQ(none.delegation_type, v4::OPEN_DELEGATE_NONE_EXT);
  EXPECT_EQ(none.od_whynone().ond_why, v4::WND4_CONTENTION);
  holder_ = now_acting();
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4_OK) << "nothing was left in the way";
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4LocalPrograms, cannot_be_watched_so_files_are_not_delegated) {
  programs_->refusal = vfs::Status::Access;
  EXPECT_EQ(kind_given(kForBoth), v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs4LocalPrograms, are_ignored_by_a_store_that_does_not_look_for_them) {
  programs_->refusal = vfs::Status::NotSupported;
  EXPECT_EQ(kind_given(kForBoth), v4::OPEN_DELEGATE_WRITE);
}

TEST_F(Nfs4LocalPrograms, have_the_delegation_recalled_when_they_open_the_file) {
  ASSERT_EQ(kind_given(kForBoth), v4::OPEN_DELEGATE_WRITE);
  gives_back();
  programs_->want(40s);
  loop_.drain();
  EXPECT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(programs_->leases, 0) << "it was given back, and the program goes on";
  loop_.pass(5s);
  EXPECT_EQ(holder_client_.asked.size(), 1u);
}

TEST_F(Nfs4LocalPrograms, do_not_wait_for_a_whole_lease) {
  ASSERT_EQ(kind_given(kForReading), v4::OPEN_DELEGATE_READ);
  programs_->want(40s);
  loop_.pass(39s);
  EXPECT_EQ(programs_->leases, 1);
  loop_.pass(2s);
  EXPECT_EQ(programs_->leases, 0) << "it was revoked, before the kernel would have";
  act_as(holder_);
  EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
}

TEST_F(Nfs4LocalPrograms, hurry_a_recall_that_another_client_began) {
  ASSERT_EQ(kind_given(kForReading), v4::OPEN_DELEGATE_READ);
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  programs_->want(10s);
  loop_.pass(12s);
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_EQ(holder_client_.asked.size(), 1u) << "one recall is enough";
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4_OK);
}

TEST_F(Nfs4LocalPrograms, end_a_holder_whose_lease_ran_out) {
  ASSERT_EQ(kind_given(kForReading), v4::OPEN_DELEGATE_READ);
  for (int i = 0; i < 2; ++i) {
    loop_.pass(46s);
    as(other_, [&] { return status_flags(); });
  }
  programs_->want(40s);
  loop_.pass(2s);
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4LocalPrograms, may_be_heard_of_when_nobody_is_called_back_any_more) {
  ASSERT_EQ(kind_given(kForReading), v4::OPEN_DELEGATE_READ);
  nfs4_.stop_callbacks();
  programs_->want(40s);
  loop_.drain();
  EXPECT_EQ(programs_->leases, 1);
}

template <class Fixture>
class LockedByPrograms : public Fixture {
 protected:
  LockedByPrograms() {
    programs_->has_locks = true;
    ExportOptions open;
    open.root_squash = false;
    Exports exports;
    STAG_CHECK(exports.add(1, {"/data", programs_, open}).ok());
    this->context_.exports.replace(std::move(exports));
  }
  ProgramLocks& locks() { return programs_->locks; }

  const std::shared_ptr<StoreWithPrograms> programs_ =
      std::make_shared<StoreWithPrograms>(this->store_);
};

class Nfs4LocalLocks : public LockedByPrograms<Nfs4Served> {
 protected:
  void SetUp() override {
    Nfs4Served::SetUp();
    file_ = create("file");
  }
  v4::LOCK4res lock(std::uint64_t offset, std::uint64_t length, v4::nfs_lock_type4 type) {
    v4::LOCK4args args;
    args.locktype = type;
    args.offset = offset;
    args.length = length;
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file_.stateid, 0, {clientid_, Rope::copy_of(bytes_of("o"))}};
    return run({putfh(file_.handle), op(v4::OP_LOCK, &Op::oplock, args)}).resarray[1].oplock();
  }
  v4::LOCKT4res test(std::uint64_t offset, std::uint64_t length) {
    v4::LOCKT4args args;
    args.locktype = v4::WRITE_LT;
    args.offset = offset;
    args.length = length;
    args.owner = {clientid_, Rope::copy_of(bytes_of("another"))};
    return run({putfh(file_.handle), op(v4::OP_LOCKT, &Op::oplockt, args)}).resarray[1].oplockt();
  }
  v4::nfsstat4 unlock(const v4::stateid4& stateid, std::uint64_t offset, std::uint64_t length) {
    return run({putfh(file_.handle),
                op(v4::OP_LOCKU, &Op::oplocku, {v4::WRITE_LT, 0, stateid, offset, length})})
        .status;
  }
  Opened file_;
};

TEST_F(Nfs4LocalLocks, are_seen_by_local_programs_where_clients_have_them) {
  const v4::LOCK4res locked = lock(10, 10, v4::WRITE_LT);
  ASSERT_EQ(locked.status, v4::NFS4_OK);
  EXPECT_TRUE(locks().server_has(10, 19, ProgramLocks::Mode::Exclusive));
  ASSERT_EQ(unlock(locked.resok4().lock_stateid, 10, 5), v4::NFS4_OK);
  EXPECT_TRUE(locks().server_has(10, 14, ProgramLocks::Mode::None));
  EXPECT_TRUE(locks().server_has(15, 19, ProgramLocks::Mode::Exclusive));
  EXPECT_EQ(lock(15, 5, v4::READ_LT).status, v4::NFS4_OK);
  EXPECT_TRUE(locks().server_has(15, 19, ProgramLocks::Mode::Shared));
  EXPECT_EQ(
      run({putfh(file_.handle), op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, file_.stateid})})
          .status,
      v4::NFS4_OK);
  EXPECT_EQ(locks().open, 0) << "what goes with its open goes here, too";
}

TEST_F(Nfs4LocalLocks, that_are_held_already_are_granted_without_a_look_at_others) {
  const v4::LOCK4res first = lock(10, 10, v4::WRITE_LT);
  ASSERT_EQ(first.status, v4::NFS4_OK);
  const v4::LOCK4res again = lock(12, 4, v4::WRITE_LT);
  ASSERT_EQ(again.status, v4::NFS4_OK);
  EXPECT_EQ(again.resok4().lock_stateid.seqid, first.resok4().lock_stateid.seqid + 1)
      << "once, by who only asked";
  EXPECT_TRUE(locks().server_has(10, 19, ProgramLocks::Mode::Exclusive));
}

TEST_F(Nfs4LocalLocks, deny_LOCK_with_their_range_where_programs_have_them) {
  locks().of_programs.set({100, 149}, ProgramLocks::Mode::Exclusive);
  const v4::LOCK4res denied = lock(0, 120, v4::READ_LT);
  ASSERT_EQ(denied.status, v4::NFS4ERR_DENIED);
  EXPECT_EQ(denied.denied().offset, 100u);
  EXPECT_EQ(denied.denied().locktype, v4::WRITE_LT);
  EXPECT_EQ(denied.denied().owner.clientid, 0u);
  ASSERT_EQ(test(149, 1).status, v4::NFS4ERR_DENIED);
  EXPECT_EQ(test(150, 1).status, v4::NFS4_OK);
  locks().of_programs = {};
  EXPECT_EQ(lock(0, 120, v4::READ_LT).status, v4::NFS4_OK) << "it asks again";
}

TEST_F(Nfs4LocalLocks, denied_by_another_client_change_nothing_for_programs) {
  ASSERT_EQ(lock(0, 10, v4::READ_LT).status, v4::NFS4_OK);
  set_up_session("another client");
  file_.stateid = open(open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, false)).stateid;
  EXPECT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4ERR_DENIED);
  EXPECT_TRUE(locks().server_has(0, 9, ProgramLocks::Mode::Shared));
  EXPECT_EQ(lock(0, 10, v4::READ_LT).status, v4::NFS4_OK);
}

TEST_F(Nfs4LocalLocks, end_with_their_client) {
  ASSERT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  nfs4_.administration().expire(clientid_, loop_.now(), [](EndedByAdmin) {});
  EXPECT_EQ(locks().open, 0);
}

TEST_F(Nfs4LocalLocks, need_a_stateid_before_any_program_hears_of_them) {
  file_.stateid.other[0] ^= std::byte{1};
  EXPECT_NE(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  EXPECT_EQ(locks().open, 0);
}

TEST_F(Nfs4LocalLocks, are_DELAY_beyond_the_limit_of_open_files) {
  context_.local_locks->limit({1, 1});
  ASSERT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  const Opened first = std::exchange(file_, create("another"));
  EXPECT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(locks().open, 1);
  EXPECT_EQ(
      run({putfh(first.handle), op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, first.stateid})})
          .status,
      v4::NFS4_OK);
  EXPECT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
}

class Nfs4LapsedLocks : public Nfs4LocalLocks {
 protected:
  void SetUp() override {
    nfs4_.watch_leases(loop_);
    Nfs4LocalLocks::SetUp();
  }
  ~Nfs4LapsedLocks() override { nfs4_.stop_callbacks(); }
  static constexpr Duration kLease = 90s;
  std::uint32_t status_flags() {
    const auto results = compound({sequence()});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    return results.resarray.at(0).opsequence().sr_resok4().sr_status_flags;
  }
  // The client, back again, learns which stateid it has lost, and locks anew under its open.
  void expect_lock_expired(const v4::stateid4& stateid) {
    EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED);
    EXPECT_EQ(unlock(stateid, 0, 10), v4::NFS4ERR_EXPIRED);
    v4::TEST_STATEID4args both;
    both.ts_stateids = {file_.stateid, stateid};
    const auto tested = run({op(v4::OP_TEST_STATEID, &Op::optest_stateid, both)});
    EXPECT_EQ(tested.resarray.at(0).optest_stateid().tsr_resok4().tsr_status_codes,
              (std::vector<v4::nfsstat4>{v4::NFS4_OK, v4::NFS4ERR_EXPIRED}));
    EXPECT_EQ(
        run({op(v4::OP_FREE_STATEID, &Op::opfree_stateid, v4::FREE_STATEID4args{stateid})}).status,
        v4::NFS4_OK);
    EXPECT_EQ(status_flags(), 0u);
    EXPECT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  }
};

TEST_F(Nfs4LapsedLocks, that_there_was_no_memory_to_give_back_are_given_back_later) {
  bool full = true;
  const auto source = context_.local_locks->add(
      {[&](const state::FileKey&, const state::Range&, state::RangeModes&) {
         if (full) throw std::bad_alloc();
       },
       [](const state::FileKey&, const std::string&) { return std::nullopt; }});
  ASSERT_EQ(lock(10, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  nfs4_.administration().expire(clientid_, loop_.now(), [](EndedByAdmin) {});
  // No client is left for whose sake the timer runs.
  loop_.pass(1min);
  EXPECT_TRUE(locks().server_has(10, 19, ProgramLocks::Mode::Exclusive));
  full = false;
  loop_.pass(2s);
  EXPECT_TRUE(locks().server_has(10, 19, ProgramLocks::Mode::None));
  EXPECT_EQ(locks().open, 0);
  context_.local_locks->remove(source);
}

TEST_F(Nfs4LapsedLocks, stay_by_courtesy_while_no_program_opens_their_file) {
  const v4::LOCK4res locked = lock(0, 10, v4::WRITE_LT);
  ASSERT_EQ(locked.status, v4::NFS4_OK);
  loop_.pass(kLease - 2s);
  EXPECT_EQ(programs_->leases, 0);
  loop_.pass(kLease);
  EXPECT_EQ(programs_->kinds, std::vector{vfs::LeaseKind::Write});
  EXPECT_TRUE(locks().server_has(0, 9, ProgramLocks::Mode::Exclusive));
  EXPECT_EQ(status_flags(), 0u) << "the client comes back, and has all that it had";
  loop_.pass(2s);
  EXPECT_EQ(programs_->leases, 0) << "now it is asked as others are";
  EXPECT_EQ(unlock(locked.resok4().lock_stateid, 0, 10), v4::NFS4_OK);
}

// They cannot ask for it as clients do.
TEST_F(Nfs4LapsedLocks, go_when_a_program_opens_their_file_and_nothing_else_does) {
  const v4::LOCK4res locked = lock(0, 10, v4::WRITE_LT);
  loop_.pass(kLease + 4s);
  ASSERT_EQ(locks().open, 1);
  programs_->want(40s);
  loop_.drain();
  EXPECT_EQ(locks().open, 0);
  EXPECT_EQ(programs_->leases, 0) << "the program goes on";
  expect_lock_expired(locked.resok4().lock_stateid);
  loop_.pass(2s);
  EXPECT_TRUE(locks().server_has(0, 9, ProgramLocks::Mode::Exclusive)) << "of one that came back";
}

TEST_F(Nfs4LapsedLocks, go_with_the_lease_where_a_program_has_their_file_open) {
  const v4::LOCK4res locked = lock(0, 10, v4::WRITE_LT);
  programs_->refusal = vfs::Status::Delay;
  loop_.pass(kLease - 2s);
  EXPECT_EQ(locks().open, 1);
  loop_.pass(10s);
  EXPECT_EQ(locks().open, 0);
  expect_lock_expired(locked.resok4().lock_stateid);
}

// Another client's READ is in the way as a program is.
TEST_F(Nfs4LapsedLocks, stay_where_there_is_a_lease_a_moment_later) {
  ASSERT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  programs_->refusal = vfs::Status::Delay;
  loop_.pass(kLease + 2s);
  EXPECT_EQ(locks().open, 1);
  programs_->refusal.reset();
  loop_.pass(10s);
  EXPECT_EQ(programs_->leases, 1);
  EXPECT_EQ(locks().open, 1);
}

TEST_F(Nfs4LapsedLocks, stay_where_their_client_comes_back_before_the_program) {
  ASSERT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  loop_.pass(kLease + 4s);
  EXPECT_EQ(status_flags(), 0u);
  programs_->want(40s);
  loop_.drain();
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_TRUE(locks().server_has(0, 9, ProgramLocks::Mode::Exclusive));
  EXPECT_EQ(status_flags(), 0u);
}

TEST_F(Nfs4LapsedLocks, go_with_their_client_when_somebody_wants_what_it_has) {
  ASSERT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  loop_.pass(kLease + 4s);
  EXPECT_EQ(programs_->leases, 1);
  set_up_session("another client");
  file_.stateid = open(open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, false)).stateid;
  EXPECT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  loop_.pass(2s);
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_TRUE(locks().server_has(0, 9, ProgramLocks::Mode::Exclusive));
}

TEST_F(Nfs4LapsedLocks, go_together_where_several_clients_lapsed) {
  ASSERT_EQ(lock(0, 10, v4::READ_LT).status, v4::NFS4_OK);
  set_up_session("another client");
  file_.stateid = open(open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, false)).stateid;
  ASSERT_EQ(lock(0, 10, v4::READ_LT).status, v4::NFS4_OK);
  loop_.pass(kLease + 4s);
  EXPECT_EQ(programs_->leases, 1);
  programs_->want(40s);
  loop_.drain();
  EXPECT_EQ(locks().open, 0);
  EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED);
}

// By how much a number changes in one turn of a loop, at most, until it is `end`.
struct InOneTurn {
  void look() {
    most = std::max(most, std::abs(number - last));
    last = number;
    if (number != end && ++turns < 10'000) loop.post([this] { look(); });
  }
  ManualLoop& loop;
  const int& number;
  const int end;
  int last = number, most = 0, turns = 0;
};

// Others are served between any two turns.
TEST_F(Nfs4LapsedLocks, are_looked_at_and_given_up_by_some_hundred_files_in_a_turn) {
  constexpr int kFiles = 600, kAtOnce = 256;
  for (int i = 0; i < kFiles; ++i) {
    file_ = create("file " + std::to_string(i));
    ASSERT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  }
  InOneTurn taken{loop_, programs_->leases, kFiles};
  programs_->on_lease = [&] {
    if (programs_->kinds.empty()) taken.look();
  };
  loop_.pass(kLease + 4s);
  EXPECT_EQ(programs_->leases, kFiles);
  EXPECT_LE(taken.most, kAtOnce);
  InOneTurn given_up{loop_, locks().open, 0};
  given_up.look();
  programs_->want(40s);
  loop_.drain();
  EXPECT_EQ(locks().open, 0);
  EXPECT_LE(given_up.most, kAtOnce);
}

TEST_F(Nfs4LapsedLocks, are_let_alone_at_the_end_of_the_server) {
  ASSERT_EQ(lock(0, 10, v4::WRITE_LT).status, v4::NFS4_OK);
  bool wound_up = false;
  nfs4_.wind_up([&] { wound_up = true; });
  EXPECT_TRUE(wound_up);
  loop_.pass(kLease + 4s);
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_EQ(locks().open, 1);
}

TEST_F(Nfs4LapsedLocks, alone_take_the_courtesy_from_their_client) {
  const v4::LOCK4res locked = lock(0, 10, v4::WRITE_LT);
  ASSERT_EQ(locked.status, v4::NFS4_OK);
  ASSERT_EQ(unlock(locked.resok4().lock_stateid, 0, 10), v4::NFS4_OK);
  loop_.pass(2 * kLease);
  EXPECT_EQ(compound({sequence()}).status, v4::NFS4_OK) << "it keeps its open";
}

class Nfs40LocalLocks : public LockedByPrograms<Nfs40Served> {};

TEST_F(Nfs40LocalLocks, are_the_same_in_version_4_0) {
  const Opened file = open_file(1, "file", "owner");
  locks().of_programs.set({100, 149}, ProgramLocks::Mode::Shared);
  EXPECT_EQ(lock(file, 3, 1, "locker", 145).status, v4::NFS4ERR_DENIED);
  EXPECT_EQ(lock(file, 4, 1, "locker", 150).status, v4::NFS4_OK);
  EXPECT_TRUE(locks().server_has(150, 159, ProgramLocks::Mode::Exclusive));
}

// RFC 7530 9.1.7: the client counts on.
TEST_F(Nfs40LocalLocks, LOCK_and_LOCKU_delayed_by_the_limit_of_open_files_take_the_seqid) {
  const Opened file = open_file(1, "file", "owner");
  context_.local_locks->limit({0, 0});
  EXPECT_EQ(lock(file, 3, 1, "locker").status, v4::NFS4ERR_DELAY);
  context_.local_locks->limit({1, 1});
  const Res locked = lock(file, 4, 1, "locker");
  ASSERT_EQ(locked.status, v4::NFS4_OK);
  const Res unlocked = unlock(file, lock_stateid(locked), 2);
  ASSERT_EQ(unlocked.status, v4::NFS4_OK);
  const v4::stateid4 stateid = unlocked.resarray[1].oplocku().lock_stateid();
  context_.local_locks->limit({0, 0});
  EXPECT_EQ(relock(file, stateid, 3, 0).status, v4::NFS4ERR_DELAY);
  context_.local_locks->limit({1, 1});
  EXPECT_EQ(relock(file, stateid, 4, 0).status, v4::NFS4_OK);
}

}  // namespace
}  // namespace stag::nfs::nfs4
