// What clients of version 4.0 find after a restart of the server (RFC 7530 9.6.2). They have no
// RECLAIM_COMPLETE, so the grace period takes its full time.
#include "base/reason.h"
#include "nfs/recovery/recovery.h"
#include "nfs/v4/administration.h"
#include "testing/nfs/nfs40_callbacks_fixture.h"
#include "testing/nfs/silent_names.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::nfs4 {
namespace {

using stag::testing::Op;
using stag::testing::op;

constexpr Duration kFullTime = std::chrono::seconds(90);

// One start of a server.
class Start40 : public stag::testing::Nfs40Served {
 public:
  Start40(Nfs4Options options, std::shared_ptr<vfs::MemoryFileSystem> store)
      : Nfs40Served(options, std::move(store)), options_(std::move(options)) {
    options_.recovery->begin_grace(*options_.grace, loop_.now() + kFullTime);
  }
  ~Start40() override {
    nfs4_.wind_up([] {});
    loop_.drain();
    nfs4_.stop_callbacks();
  }
  void TestBody() override {}
  // From now on clients listen for callbacks.
  void listen() {
    nfs4_.start_callbacks(loop_, &network_);
    callback_ = {v4::NFS4_CALLBACK, {"tcp", "192.0.2.1.8.1"}};
  }

  using Nfs40Served::as;
  using Nfs40Served::client_;
  using Nfs40Served::close;
  using Nfs40Served::context_;
  using Nfs40Served::lock;
  using Nfs40Served::loop_;
  using Nfs40Served::nfs4_;
  using Nfs40Served::open_file;
  using Nfs40Served::open_raw;
  using Nfs40Served::Opened;
  using Nfs40Served::renew;
  using Nfs40Served::Res;
  using Nfs40Served::run;
  using Nfs40Served::set_up_client;
  using Nfs40Served::set_up_session;

  bool grace() const { return options_.grace->active(loop_.now()); }
  Result<Ok, std::string> adopt(recovery::Database& lost) {
    return options_.recovery->adopt(lost, *options_.grace, loop_.now() + kFullTime);
  }
  // By CLAIM_PREVIOUS, as the first operation of the owner.
  Opened reclaim(const v4::nfs_fh4& file, const std::string& owner,
                 v4::open_delegation_type4 delegation = v4::OPEN_DELEGATE_NONE) {
    v4::OPEN4args args = open_args("", v4::OPEN4_SHARE_ACCESS_BOTH, false, owner);
    args.owner.clientid = client_;
    args.seqid = 1;
    args.claim.claim = v4::CLAIM_PREVIOUS;
    args.claim.delegate_type() = delegation;
    const Res results =
        run({stag::testing::putfh(file), op(v4::OP_OPEN, &Op::opopen, std::move(args))});
    if (results.status != v4::NFS4_OK) return {results.status, {}, {}};
    const v4::OPEN4resok& ok = results.resarray[1].opopen().resok4();
    EXPECT_EQ(ok.rflags & v4::OPEN4_RESULT_CONFIRM, 0u) << "RFC 7530 9.1.11";
    delegation_ = ok.delegation;
    return {results.status, ok.stateid, file};
  }
  v4::nfsstat4 reclaim_lock(const Opened& file) {
    v4::LOCK4args args = lock_args(0);
    args.reclaim = true;
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {2, file.stateid, 1, {client_, Rope::copy_of(bytes_of("locker"))}};
    return run({stag::testing::putfh(file.handle), op(v4::OP_LOCK, &Op::oplock, std::move(args))})
        .status;
  }
  // A client that has no open waits for the grace period, and does not end it.
  v4::nfsstat4 read_without_open(const v4::nfs_fh4& file) {
    return run({stag::testing::putfh(file), read_op({}, 0, 1)}).status;
  }
  void watch() {
    nfs4_.watch_leases(loop_);
    loop_.drain();
  }
  v4::nfsstat4 read(const Opened& file) {
    return run({stag::testing::putfh(file.handle), read_op(file.stateid, 0, 1)}).status;
  }

  v4::open_delegation4 delegation_;  // what the last reclaim gave
  stag::testing::CallbackClient called_{loop_, server_};
  stag::testing::CallbackNetwork network_{loop_, called_.service()};

 private:
  const Nfs4Options options_;
};

class Nfs40Restart : public ::testing::Test {
 protected:
  // The one before is not ended in any orderly way.
  Start40& start(const char* records = "db") {
    auto recovery = recovery::Recovery::open(folder_.path() / records, 90, nullptr);
    STAG_CHECK(recovery.ok());
    recoveries_.push_back(*std::move(recovery));
    Nfs4Options options;
    options.recovery = recoveries_.back().get();
    starts_.push_back(std::make_unique<Start40>(options, store_));
    return *starts_.back();
  }
  // A client opens and locks a file; then the server is killed and starts again.
  Start40& restart_with_a_lock() {
    Start40& first = start();
    first.client_ = first.set_up_client("a client");
    opened_ = first.open_file(1, "file", "owner");
    EXPECT_EQ(first.lock(opened_, 3, 1, "locker").status, v4::NFS4_OK);
    return start();
  }

  // A client has reclaimed the open of its file, and not yet the lock, when the grace period ends.
  Start40& cut_off_after_a_reclaim() {
    Start40& second = restart_with_a_lock();
    second.watch();
    second.client_ = second.set_up_client("a client", 2);
    reclaimed_ = second.reclaim(opened_.handle, "owner");
    EXPECT_EQ(reclaimed_.status, v4::NFS4_OK);
    second.loop_.pass(kFullTime / 2);
    EXPECT_EQ(second.renew(second.client_), v4::NFS4_OK);
    second.loop_.pass(kFullTime / 2 + std::chrono::seconds(2));
    EXPECT_FALSE(second.grace());
    return second;
  }
  // Whether a client that holds something reclaims the file at the next start, in a grace period.
  v4::nfsstat4 reclaimed_after_a_restart() {
    Start40& last = *starts_.back();
    last.client_ = last.set_up_client("one more");
    EXPECT_EQ(last.open_file(1, "of one more", "one more").status, v4::NFS4_OK);
    Start40& next = start();
    EXPECT_TRUE(next.grace());
    next.client_ = next.set_up_client("a client", 3);
    return next.reclaim(opened_.handle, "owner").status;
  }
  // How often records could not be written, where none can.
  template <class Work>
  int tried_to_write(Work work) {
    sqlite3* other = nullptr;
    EXPECT_EQ(sqlite3_open((folder_.path() / "db").c_str(), &other), SQLITE_OK);
    const auto run = [&](const char* text) {
      EXPECT_EQ(sqlite3_exec(other, text, nullptr, nullptr, nullptr), SQLITE_OK);
    };
    run("CREATE TRIGGER refuse BEFORE INSERT ON clients BEGIN SELECT RAISE(ABORT, 'no room'); END");
    static int failed;
    failed = 0;
    set_trace_sink([](Reason reason, std::string_view, std::string_view) {
      failed += reason == Reason::ClientRecordsUnwritten;
    });
    work();
    set_trace_sink(nullptr);
    run("DROP TRIGGER refuse");
    sqlite3_close(other);
    return failed;
  }

  // What the client gets that claims a write delegation after a restart.
  v4::open_write_delegation4 claim_delegation(bool reachable) {
    Start40& second = restart_with_a_lock();
    second.listen();
    second.network_.reachable = reachable;
    second.client_ = second.set_up_client("a client", 2);
    EXPECT_EQ(second.reclaim(opened_.handle, "owner", v4::OPEN_DELEGATE_WRITE).status, v4::NFS4_OK);
    EXPECT_EQ(second.delegation_.delegation_type, v4::OPEN_DELEGATE_WRITE);
    if (second.delegation_.delegation_type != v4::OPEN_DELEGATE_WRITE) return {};
    return second.delegation_.write();
  }

  vfs::testing::Folder folder_{"/tmp"};
  std::shared_ptr<vfs::MemoryFileSystem> store_ = std::make_shared<vfs::MemoryFileSystem>();
  std::vector<std::unique_ptr<recovery::Recovery>> recoveries_;
  std::vector<std::unique_ptr<Start40>> starts_;
  Start40::Opened opened_, reclaimed_;
};

TEST_F(Nfs40Restart, a_client_that_only_looked_leaves_no_record) {
  start().set_up_client("a client");
  EXPECT_FALSE(start().grace());
}

TEST_F(Nfs40Restart, a_client_that_has_closed_all_leaves_no_record_once_its_lease_is_over) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  EXPECT_EQ(first.close(first.open_file(1, "file", "owner"), 3).status, v4::NFS4_OK);
  first.loop_.pass(2 * kFullTime);
  first.set_up_client("another");
  EXPECT_FALSE(start().grace());
}

TEST_F(Nfs40Restart, a_client_that_has_closed_all_leaves_no_record_at_an_orderly_end) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  EXPECT_EQ(first.close(first.open_file(1, "file", "owner"), 3).status, v4::NFS4_OK);
  first.nfs4_.remove_idle_records();
  EXPECT_FALSE(start().grace());
}

TEST_F(Nfs40Restart, a_client_with_an_open_file_reclaims_it_after_an_orderly_end) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  opened_ = first.open_file(1, "file", "owner");
  first.nfs4_.remove_idle_records();
  Start40& second = start();
  ASSERT_TRUE(second.grace());
  second.client_ = second.set_up_client("a client");
  EXPECT_EQ(second.reclaim(opened_.handle, "owner").status, v4::NFS4_OK);
}

TEST_F(Nfs40Restart, a_client_that_restarted_and_only_looked_leaves_no_record) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  first.open_file(1, "file", "owner");
  first.set_up_client("a client", 2);
  EXPECT_FALSE(start().grace());
}

// What it got from the lost server is stale at the other, and never that of another client there.
TEST_F(Nfs40Restart, a_client_of_a_lost_server_reclaims_where_it_was_adopted) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  opened_ = first.open_file(1, "file", "owner");
  EXPECT_EQ(first.lock(opened_, 3, 1, "locker").status, v4::NFS4_OK);
  Start40& other = start("other");
  other.client_ = other.set_up_client("another");
  EXPECT_EQ(other.open_file(1, "new", "other").status, v4::NFS4_OK);
  auto lost = recovery::Database::open_ended(folder_.path() / "db");
  ASSERT_TRUE(lost.ok());
  EXPECT_TRUE(other.adopt(**lost).ok());
  EXPECT_EQ(other.renew(first.client_), v4::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(other.read(opened_), v4::NFS4ERR_STALE_STATEID);
  other.client_ = other.set_up_client("a client", 2);
  const Start40::Opened reclaimed = other.reclaim(opened_.handle, "owner");
  ASSERT_EQ(reclaimed.status, v4::NFS4_OK);
  EXPECT_EQ(other.reclaim_lock(reclaimed), v4::NFS4_OK);
  EXPECT_TRUE(other.grace());
  other.loop_.pass(kFullTime);
  EXPECT_FALSE(other.grace());
}

TEST_F(Nfs40Restart, a_recorded_client_reclaims_its_opens_and_locks) {
  Start40& second = restart_with_a_lock();
  EXPECT_TRUE(second.grace());
  second.client_ = second.set_up_client("a client", 2);
  const Start40::Opened reclaimed = second.reclaim(opened_.handle, "owner");
  ASSERT_EQ(reclaimed.status, v4::NFS4_OK);
  EXPECT_EQ(second.reclaim_lock(reclaimed), v4::NFS4_OK);
  second.loop_.pass(kFullTime / 2);
  EXPECT_EQ(second.renew(second.client_), v4::NFS4_OK);
  second.loop_.pass(kFullTime / 2);
  EXPECT_FALSE(second.grace());
  EXPECT_EQ(second.read(reclaimed), v4::NFS4_OK);
  second.client_ = second.set_up_client("another");
  const Start40::Opened other = second.open_file(1, "file", "other");
  EXPECT_EQ(second.lock(other, 3, 1, "other").status, v4::NFS4ERR_DENIED);
}

TEST_F(Nfs40Restart, a_delegation_that_is_claimed_is_given_again) {
  const v4::open_write_delegation4 given = claim_delegation(true);
  EXPECT_FALSE(given.recall);
  EXPECT_EQ(starts_.back()->renew(starts_.back()->client_), v4::NFS4_OK);
}

TEST_F(Nfs40Restart, a_delegation_that_could_not_be_recalled_is_given_again_as_recalled) {
  EXPECT_TRUE(claim_delegation(false).recall);
  EXPECT_EQ(starts_.back()->renew(starts_.back()->client_), v4::NFS4ERR_CB_PATH_DOWN);
}

TEST_F(Nfs40Restart, the_names_of_the_time_before_are_stale) {
  const Start40& first = start();
  Start40& second = restart_with_a_lock();
  const v4::clientid4 before = starts_[starts_.size() - 2]->client_;
  EXPECT_NE(before, first.client_);
  EXPECT_EQ(second.renew(before), v4::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(second.read(opened_), v4::NFS4ERR_STALE_STATEID);
}

TEST_F(Nfs40Restart, grace_takes_its_full_time_though_all_clients_of_later_versions_are_done) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  first.open_file(1, "file", "owner");
  first.set_up_session("of version 4.1");
  Start40& second = start();
  second.client_ = second.set_up_client("a client", 2);
  second.set_up_session("of version 4.1");
  EXPECT_TRUE(second.grace());
  EXPECT_EQ(second.open_raw(1, "new", "owner").status, v4::NFS4ERR_GRACE);
  second.loop_.pass(kFullTime - Duration(1));
  EXPECT_TRUE(second.grace());
  second.loop_.pass(Duration(1));
  EXPECT_FALSE(second.grace());
}

TEST_F(Nfs40Restart, state_that_was_not_reclaimed_in_grace_is_gone) {
  Start40& second = restart_with_a_lock();
  second.loop_.pass(kFullTime);
  second.client_ = second.set_up_client("another");
  const Start40::Opened other = second.open_file(1, "file", "other");
  EXPECT_EQ(second.lock(other, 3, 1, "other").status, v4::NFS4_OK);
  second.client_ = second.set_up_client("a client", 2);
  EXPECT_EQ(second.reclaim(opened_.handle, "owner").status, v4::NFS4ERR_NO_GRACE);
  Start40& third = start();
  third.client_ = third.set_up_client("a client", 3);
  EXPECT_EQ(third.reclaim(opened_.handle, "owner").status, v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs40Restart, grace_ends_though_nobody_opens_anything) {
  Start40& second = restart_with_a_lock();
  second.watch();
  EXPECT_EQ(second.read_without_open(opened_.handle), v4::NFS4ERR_GRACE);
  second.loop_.pass(kFullTime + std::chrono::seconds(2));
  EXPECT_EQ(second.read_without_open(opened_.handle), v4::NFS4_OK);
  EXPECT_FALSE(second.loop_.advance()) << "no timer is left";
}

TEST_F(Nfs40Restart, grace_for_adopted_clients_ends_though_nobody_opens_anything) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  opened_ = first.open_file(1, "file", "owner");
  start("other");  // so that the two have not counted the same start
  Start40& other = start("other");
  other.watch();
  EXPECT_EQ(other.read_without_open(opened_.handle), v4::NFS4_OK);
  auto lost = recovery::Database::open_ended(folder_.path() / "db");
  ASSERT_TRUE(lost.ok());
  ASSERT_TRUE(other.adopt(**lost).ok());
  EXPECT_EQ(other.read_without_open(opened_.handle), v4::NFS4ERR_GRACE);
  other.loop_.pass(kFullTime + std::chrono::seconds(2));
  EXPECT_EQ(other.read_without_open(opened_.handle), v4::NFS4_OK);
}

TEST_F(Nfs40Restart, nobody_else_reclaims_what_a_client_had) {
  Start40& second = restart_with_a_lock();
  second.client_ = second.set_up_client("another");
  EXPECT_EQ(second.reclaim(opened_.handle, "owner").status, v4::NFS4ERR_RECLAIM_BAD);
  second.as(1000, 1000);
  second.client_ = second.set_up_client("a client", 2);
  EXPECT_EQ(second.reclaim(opened_.handle, "owner").status, v4::NFS4ERR_RECLAIM_BAD);
}

// RFC 7530 9.6.3.4, the second edge condition.
TEST_F(Nfs40Restart, a_client_that_sent_nothing_after_a_grace_period_reclaims_nothing_in_the_next) {
  Start40& second = cut_off_after_a_reclaim();
  second.client_ = second.set_up_client("another");
  const Start40::Opened other = second.open_file(1, "file", "other");
  EXPECT_EQ(second.lock(other, 3, 1, "other").status, v4::NFS4_OK) << "it was not reclaimed";
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

TEST_F(Nfs40Restart, a_client_that_renews_after_a_grace_period_reclaims_in_the_next) {
  Start40& second = cut_off_after_a_reclaim();
  EXPECT_EQ(second.renew(second.client_), v4::NFS4_OK);
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

TEST_F(Nfs40Restart, a_client_that_opens_something_after_a_grace_period_reclaims_in_the_next) {
  Start40& second = cut_off_after_a_reclaim();
  EXPECT_EQ(second.open_file(1, "new", "a second owner").status, v4::NFS4_OK);
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

TEST_F(Nfs40Restart, RENEW_records_once_and_tries_until_then) {
  Start40& second = cut_off_after_a_reclaim();
  const auto renew = [&] { EXPECT_EQ(second.renew(second.client_), v4::NFS4_OK); };
  EXPECT_EQ(tried_to_write(renew), 1);
  EXPECT_EQ(tried_to_write(renew), 1);
  renew();
  EXPECT_EQ(tried_to_write(renew), 0);
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4_OK);
}

// The first edge condition. There is no FREE_STATEID by which it could say that it knows.
TEST_F(Nfs40Restart, a_client_that_had_something_revoked_is_not_recorded_again) {
  Start40& first = start();
  first.client_ = first.set_up_client("a client");
  opened_ = first.open_file(1, "file", "owner");
  EXPECT_TRUE(first.nfs4_.administration().revoke({1, opened_.stateid.other}));
  EXPECT_EQ(first.renew(first.client_), v4::NFS4_OK);
  EXPECT_EQ(first.open_file(1, "new", "a second owner").status, v4::NFS4_OK);
  EXPECT_EQ(reclaimed_after_a_restart(), v4::NFS4ERR_RECLAIM_BAD);
}

// RFC 7530 9.6.2. Behind the PUTFH that is refused stands whose it is.
TEST_F(Nfs40Restart, the_grace_period_goes_on_while_no_name_service_answers_for_who_may_reclaim) {
  const auto names = std::make_shared<stag::testing::SilentNames>();
  Start40& second = restart_with_a_lock();
  second.watch();
  names->open_to_names(second.context_, store_);
  second.client_ = second.set_up_client("a client", 2);
  for (Duration passed{}; passed < 2 * kFullTime; passed += std::chrono::seconds(15)) {
    EXPECT_EQ(second.reclaim(opened_.handle, "owner").status, v4::NFS4ERR_DELAY);
    second.loop_.pass(std::chrono::seconds(15));
  }
  names->answers = true;
  static_cast<void>(second.reclaim(opened_.handle, "owner"));
  reclaimed_ = second.reclaim(opened_.handle, "owner");
  ASSERT_EQ(reclaimed_.status, v4::NFS4_OK);
  EXPECT_EQ(second.reclaim_lock(reclaimed_), v4::NFS4_OK);
}

TEST_F(Nfs40Restart, nobody_is_kept_waiting_by_a_client_that_may_reclaim_nothing) {
  const auto names = std::make_shared<stag::testing::SilentNames>();
  Start40& second = restart_with_a_lock();
  second.watch();
  names->open_to_names(second.context_, store_);
  second.client_ = second.set_up_client("another", 2);
  for (Duration passed{}; passed <= kFullTime; passed += std::chrono::seconds(15)) {
    EXPECT_EQ(second.reclaim(opened_.handle, "owner").status, v4::NFS4ERR_DELAY);
    second.loop_.pass(std::chrono::seconds(15));
  }
  EXPECT_FALSE(second.grace());
}

}  // namespace
}  // namespace stag::nfs::nfs4
