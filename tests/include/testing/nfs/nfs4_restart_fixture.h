// A server of version 4.1 that is killed and starts again, with its records of clients and its
// store.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "nfs/recovery/recovery.h"
#include "nfs/v4/administration.h"
#include "testing/nfs/nfs4_callback_client.h"
#include "testing/vfs/posix_backend.h"

namespace stag::testing {

inline constexpr Duration kGraceTime = std::chrono::seconds(90);

// One start of a server, with the client that its session is of.
class Nfs4Start : public Nfs4Served {
 public:
  Nfs4Start(nfs::nfs4::Nfs4Options options, std::shared_ptr<vfs::MemoryFileSystem> store)
      : Nfs4Served(options, std::move(store)), options_(std::move(options)) {
    options_.recovery->begin_grace(*options_.grace, loop_.now() + kGraceTime);
  }
  ~Nfs4Start() override { nfs4_.stop_callbacks(); }
  void TestBody() override {}

  using Nfs4Served::as;
  using Nfs4Served::clientid_;
  using Nfs4Served::compound;
  using Nfs4Served::context_;
  using Nfs4Served::create;
  using Nfs4Served::destroy_clientid;
  using Nfs4Served::destroy_session;
  using Nfs4Served::exchange_id;
  using Nfs4Served::loop_;
  using Nfs4Served::nfs4_;
  using Nfs4Served::open;
  using Nfs4Served::open_args;
  using Nfs4Served::Opened;
  using Nfs4Served::read_op;
  using Nfs4Served::reclaim_complete;
  using Nfs4Served::Res;
  using Nfs4Served::run;
  using Nfs4Served::sequence;
  using Nfs4Served::session_args;
  using Nfs4Served::set_up_session;

  // Begins a COMPOUND, in a slot that no other one uses; it may have to wait. `results`, which
  // outlive it, has them when it has ended.
  void begin(Op operation, std::optional<Res>& results, std::vector<Op> before = {}) {
    nfs::v4::SEQUENCE4args args;
    args.sa_sessionid = session_;
    args.sa_slotid = ++last_slot_;
    args.sa_sequenceid = 1;
    std::vector<Op> operations = std::move(before);
    operations.insert(operations.begin(), op(nfs::v4::OP_SEQUENCE, &Op::opsequence, args));
    operations.push_back(std::move(operation));
    detach(call({"tag", minor_, std::move(operations)}, results));
    loop_.drain();
  }
  bool grace() const { return options_.grace->active(); }
  // As clients of another server do that were adopted; one that is over stays so.
  void lengthen_grace(Duration time) {
    if (grace()) options_.grace->begin(loop_.now() + time, false);
  }
  Opened reclaim(const nfs::v4::nfs_fh4& file,
                 nfs::v4::open_delegation_type4 delegation = nfs::v4::OPEN_DELEGATE_NONE,
                 std::uint32_t share_deny = nfs::v4::OPEN4_SHARE_DENY_NONE) {
    nfs::v4::OPEN4args args = open_args("", nfs::v4::OPEN4_SHARE_ACCESS_BOTH, false);
    args.share_deny = share_deny;
    args.claim.claim = nfs::v4::CLAIM_PREVIOUS;
    args.claim.delegate_type() = delegation;
    const auto results = run({putfh(file), op(nfs::v4::OP_OPEN, &Op::opopen, std::move(args))});
    if (results.status != nfs::v4::NFS4_OK) return {results.status, {}, {}};
    delegation_ = results.resarray[1].opopen().resok4().delegation;
    return {results.status, results.resarray[1].opopen().resok4().stateid, file};
  }
  // A session of the client, which is called back; it may still reclaim.
  void set_up_called_back() {
    nfs4_.start_callbacks(loop_);
    via_ = &called_.channel;
    const auto client = exchange_id("a client");
    clientid_ = client.eir_clientid;
    nfs::v4::CREATE_SESSION4args args = session_args(clientid_, client.eir_sequenceid);
    args.csa_flags = nfs::v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    args.csa_cb_program = nfs::v4::NFS4_CALLBACK;
    args.csa_sec_parms.resize(1);
    args.csa_sec_parms[0].cb_secflavor = nfs::v4::AUTH_SYS;
    args.csa_sec_parms[0].cbsp_sys_cred() = {0, "the client", 17, 18, {}};
    const auto made = compound({op(nfs::v4::OP_CREATE_SESSION, &Op::opcreate_session, args)});
    ASSERT_EQ(made.status, nfs::v4::NFS4_OK);
    session_ = made.resarray[0].opcreate_session().csr_resok4().csr_sessionid;
    sequenceid_ = 0;
  }
  std::uint32_t status_flags() {
    const Res results = compound({sequence(), putrootfh()});
    EXPECT_EQ(results.status, nfs::v4::NFS4_OK);
    return results.resarray.at(0).opsequence().sr_resok4().sr_status_flags;
  }
  nfs::v4::nfsstat4 lock(const Opened& file, bool reclaim,
                         nfs::v4::nfs_lock_type4 type = nfs::v4::WRITE_LT) {
    nfs::v4::LOCK4args args{type, reclaim, 0, 10, {}};
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file.stateid, 0, {clientid_, Rope::copy_of(bytes_of("locker"))}};
    return run({putfh(file.handle), op(nfs::v4::OP_LOCK, &Op::oplock, std::move(args))}).status;
  }
  // CLAIM_DELEG_CUR_FH.
  Opened open_by_delegation(const nfs::v4::nfs_fh4& file, const nfs::v4::stateid4& delegation,
                            std::uint32_t access) {
    nfs::v4::OPEN4args args = open_args("", access, false);
    args.claim.claim = nfs::v4::CLAIM_DELEG_CUR_FH;
    args.claim.oc_delegate_stateid() = delegation;
    const auto results = run({putfh(file), op(nfs::v4::OP_OPEN, &Op::opopen, std::move(args))});
    if (results.status != nfs::v4::NFS4_OK) return {results.status, {}, {}};
    return {results.status, results.resarray[1].opopen().resok4().stateid, file};
  }
  nfs::v4::nfsstat4 close(const Opened& file) {
    return run({putfh(file.handle),
                op(nfs::v4::OP_CLOSE, &Op::opclose, nfs::v4::CLOSE4args{0, file.stateid})})
        .status;
  }
  Result<Ok, std::string> adopt(nfs::recovery::Database& lost) {
    return options_.recovery->adopt(lost, *options_.grace, loop_.now() + kGraceTime);
  }
  // The calling client.
  struct Who {
    nfs::v4::clientid4 clientid;
    nfs::v4::sessionid4 session;
    std::uint32_t sequenceid;
  };
  // Returns the one that called until now.
  Who act_as(const Who& who) {
    const Who before = myself();
    clientid_ = who.clientid;
    session_ = who.session;
    sequenceid_ = who.sequenceid;
    return before;
  }
  Who myself() const { return {clientid_, session_, sequenceid_}; }
  bool revoke(const Opened& file) {
    return nfs4_.administration().revoke({file.stateid.seqid, file.stateid.other});
  }
  nfs::v4::nfsstat4 free_stateid(const Opened& file) {
    return run({op(nfs::v4::OP_FREE_STATEID, &Op::opfree_stateid,
                   nfs::v4::FREE_STATEID4args{file.stateid})})
        .status;
  }
  // As a server ends that hands over, or is told to end.
  void end_in_order() { nfs4_.remove_idle_records(); }
  nfs::nfs4::EndedByAdmin end_by_admin() {
    nfs::nfs4::EndedByAdmin result = nfs::nfs4::EndedByAdmin::Busy;
    nfs4_.administration().expire(clientid_, loop_.now(),
                                  [&](nfs::nfs4::EndedByAdmin outcome) { result = outcome; });
    return result;
  }

  nfs::v4::open_delegation4 delegation_;  // what the last reclaim gave
  CallbackClient called_{loop_, server_};

 private:
  Task<void> call(nfs::v4::COMPOUND4args args, std::optional<Res>& to) {
    rpc::Client client(*via_, nfs::ulb::nfs4(), credentials_);
    auto results = co_await client.call<nfs::v4::NFSPROC4_COMPOUND>(args);
    if (results) to = std::move(*results);
  }

  const nfs::nfs4::Nfs4Options options_;
  std::uint32_t last_slot_ = 0;
};

class Nfs4RestartServed : public ::testing::Test {
 protected:
  explicit Nfs4RestartServed(const char* place = "/tmp") : folder_(place) {}
  // The one before is not ended in any orderly way.
  Nfs4Start& start(const char* records = "db") {
    auto recovery = nfs::recovery::Recovery::open(folder_.path() / records, 90, worker_);
    STAG_CHECK(recovery.ok());
    recoveries_.push_back(*std::move(recovery));
    nfs::nfs4::Nfs4Options options;
    options.recovery = recoveries_.back().get();
    options.states = states_;
    starts_.push_back(std::make_unique<Nfs4Start>(options, store_));
    return *starts_.back();
  }
  // A client opens and locks a file; then the server is killed and starts again.
  Nfs4Start& restart_with_a_lock() {
    Nfs4Start& first = start();
    first.set_up_session();
    opened_ = first.create("file");
    EXPECT_EQ(first.lock(opened_, false), nfs::v4::NFS4_OK);
    return start();
  }
  // Another client has something to claim, too.
  Nfs4Start& restart_of_two() {
    Nfs4Start& first = start();
    first.set_up_session("another");
    EXPECT_EQ(first.create("of another").status, nfs::v4::NFS4_OK);
    first.set_up_session();
    opened_ = first.create("file");
    return start();
  }
  // A client that denies others its open file has lapsed, and another one has a session.
  Nfs4Start& start_with_a_lapsed_denial() {
    Nfs4Start& first = start();
    first.set_up_session();
    nfs::v4::OPEN4args args = first.open_args("file", nfs::v4::OPEN4_SHARE_ACCESS_BOTH, true);
    args.share_deny = nfs::v4::OPEN4_SHARE_DENY_BOTH;
    opened_ = first.open(args);
    EXPECT_EQ(opened_.status, nfs::v4::NFS4_OK);
    first.loop_.pass(2 * kGraceTime);
    first.set_up_session("another");
    return first;
  }
  // A client has reclaimed the open of its file, and not yet the lock, when the grace period ends.
  Nfs4Start& cut_off_after_a_reclaim() {
    Nfs4Start& second = restart_with_a_lock();
    second.set_up_session("a client", false);
    EXPECT_EQ(second.reclaim(opened_.handle).status, nfs::v4::NFS4_OK);
    second.loop_.pass(kGraceTime / 2);
    second.status_flags();
    second.loop_.pass(kGraceTime / 2);
    second.status_flags();
    return second;
  }
  // Whether a client that holds something reclaims the file at the next start, in a grace period.
  nfs::v4::nfsstat4 reclaimed_after_a_restart() {
    starts_.back()->set_up_session("one more");
    EXPECT_EQ(starts_.back()->create("of one more").status, nfs::v4::NFS4_OK);
    Nfs4Start& next = start();
    EXPECT_TRUE(next.grace());
    next.set_up_session("a client", false);
    return next.reclaim(opened_.handle).status;
  }
  // A client has a delegation, and keeps it though another one, which calls now, wants the file.
  Nfs4Start::Who keep_a_delegation(Nfs4Start& first) {
    first.set_up_called_back();
    EXPECT_EQ(first.reclaim_complete(), nfs::v4::NFS4_OK);
    opened_ = first.create("file");
    const Nfs4Start::Who holder = first.myself();
    first.set_up_session("another");
    EXPECT_EQ(open_again(first), nfs::v4::NFS4ERR_DELAY);
    return holder;
  }
  // A lease and more, in which both go on.
  void pass_a_lease(Nfs4Start& first, Nfs4Start::Who& holder) {
    for (int i = 0; i < 4; ++i) {
      first.loop_.pass(std::chrono::seconds(30));
      const Nfs4Start::Who other = first.act_as(holder);
      first.status_flags();
      holder = first.act_as(other);
      first.status_flags();
    }
  }
  static nfs::v4::nfsstat4 open_again(Nfs4Start& at, const char* name = "file") {
    return at.open(at.open_args(name, nfs::v4::OPEN4_SHARE_ACCESS_BOTH, false)).status;
  }
  // A server that runs adopts the clients of the first, which has been killed.
  void adopt_at(Nfs4Start& running) {
    auto lost = nfs::recovery::Database::open_ended(folder_.path() / "db");
    STAG_CHECK(lost.ok());
    EXPECT_TRUE(running.adopt(**lost).ok());
  }
  template <class T>
  static vfs::Outcome<T> now(Nfs4Start& at, vfs::Operation<T> operation) {
    const auto await = [](vfs::Operation<T> started) -> Task<vfs::Outcome<T>> {
      co_return co_await std::move(started);
    };
    return *at.loop_.run(await(std::move(operation)));
  }
  void break_records(const char* event) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open((folder_.path() / "db").c_str(), &other), SQLITE_OK);
    const std::string trigger = std::string("CREATE TRIGGER refuse BEFORE ") + event +
                                " ON clients BEGIN SELECT RAISE(ABORT, 'no room'); END";
    EXPECT_EQ(sqlite3_exec(other, trigger.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
  }
  void repair_records() {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open((folder_.path() / "db").c_str(), &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, "DROP TRIGGER refuse", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
  }

  std::shared_ptr<Executor> worker_;  // of starts to come; null: records are written at once
  vfs::testing::Folder folder_;
  std::shared_ptr<vfs::MemoryFileSystem> store_ = std::make_shared<vfs::MemoryFileSystem>();
  std::vector<std::unique_ptr<nfs::recovery::Recovery>> recoveries_;
  std::vector<std::unique_ptr<Nfs4Start>> starts_;
  Nfs4Start::Opened opened_;
  nfs::state::StateLimits states_;  // of starts to come
};

}  // namespace stag::testing
