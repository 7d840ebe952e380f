// Each allocation of an operation fails once: nothing breaks, and what comes later finds nothing
// half done.
#include <memory>
#include <optional>

#include "nfs/recovery/recovery.h"
#include "nfs/v4/ops/patient_source.h"
#include "testing/failing_new.h"
#include "testing/held_executor.h"
#include "testing/nfs/nfs40_callbacks_fixture.h"
#include "testing/nfs/nfs4_copies_fixture.h"
#include "testing/nfs/nfs4_delegations_fixture.h"
#include "testing/nfs/nfs4_restart_fixture.h"
#include "testing/vfs/posix_backend.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

// More than any of the operations here allocates.
constexpr std::size_t kMost = 4000;

template <class Fixture>
class Failing : public Fixture {
 public:
  using Fixture::Fixture;

 protected:
  using Res = v4::COMPOUND4res;

  // The operation with its n-th allocation failing, and a second and a half of what follows;
  // nullopt without a Reply. `failed_` says whether there were so many allocations.
  std::optional<Res> attempt(std::size_t n, v4::COMPOUND4args args) {
    const auto sent = std::make_shared<Sent>(*this, std::move(args));
    allocations_until_failure = n;
    try {
      detach(call(sent));
    } catch (const std::bad_alloc&) {
    }
    pass(1500ms);
    failed_ = allocations_until_failure == 0;
    allocations_until_failure = 0;
    pass(1500ms);
    return sent->result;
  }
  // As a loop goes on when a function on it throws.
  void pass(Duration time) {
    const TimePoint end = this->loop_.now() + time;
    while (this->loop_.now() < end) {
      try {
        this->loop_.pass(end - this->loop_.now());
      } catch (const std::bad_alloc&) {
      }
    }
  }
  // Behind a SEQUENCE, whose slot must be of use afterwards, whatever happened.
  std::optional<Res> attempt_in_session(std::size_t n, std::vector<Op> operations) {
    operations.insert(operations.begin(), this->sequence());
    auto results = attempt(n, {"tag", this->minor_, std::move(operations)});
    if (results && results->resarray.size() > 1) return results;
    --this->sequenceid_;
    const Res again = this->compound({this->sequence(), putrootfh()});
    EXPECT_TRUE(again.status == v4::NFS4_OK || again.status == v4::NFS4ERR_SEQ_FALSE_RETRY ||
                again.status == v4::NFS4ERR_RETRY_UNCACHED_REP)
        << again.status;
    return std::nullopt;
  }
  // Whether this comes true within a lease and a bit, in which clients stay alive.
  template <class Condition>
  bool comes_true(Condition condition, Duration within = 120s) {
    for (Duration passed{}; passed < within; passed += 2s) {
      if (condition()) return true;
      pass(2s);
    }
    return false;
  }
  // How long a client has to wait for a delegation that kept one until it was revoked.
  static constexpr Duration kAfterRevocation = 6min;

  bool failed_ = false;

  struct Sent {
    Sent(Failing& test, v4::COMPOUND4args of)
        : client(*test.via_, ulb::nfs4(), test.credentials_), args(std::move(of)) {}
    rpc::Client client;
    v4::COMPOUND4args args;
    std::optional<Res> result;
  };
  static Task<void> call(std::shared_ptr<Sent> sent) {
    auto result = co_await sent->client.template call<v4::NFSPROC4_COMPOUND>(sent->args);
    if (result) sent->result = std::move(*result);
  }
};

class Nfs4Allocation : public Failing<Nfs4DelegationsServed> {
 protected:
  std::vector<Op> open_ops(const std::string& name, std::uint32_t access = kForBoth) {
    return {putrootfh(), lookup("data"),
            op(v4::OP_OPEN, &Op::opopen, open_args(name, access, true)), getfh()};
  }
  bool other_can_open(const std::string& name) {
    return comes_true([&] {
      status_flags();
      return other_opens(kForBoth, name) == v4::NFS4_OK;
    });
  }
};

TEST_F(Nfs4Allocation, failing_in_OPEN_lets_others_open_the_file) {
  open_for(kForReading);  // The probe.
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    const std::string name = "file " + std::to_string(n);
    attempt_in_session(n, open_ops(name));
    ASSERT_EQ(as(other_, [&] { return create(name + "'").status; }), v4::NFS4_OK);
    ASSERT_EQ(run(open_ops(name)).status, v4::NFS4_OK) << n;
    if (n % 10 == 0) {
      ASSERT_TRUE(other_can_open(name)) << n;
    }
    ASSERT_LT(n, kMost);
  }
}

TEST_F(Nfs4Allocation, failing_in_a_recall_does_not_keep_the_file_for_ever) {
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    const std::string name = "file " + std::to_string(n);
    // A callback that was lost is told, and the client binds its connection again.
    if (status_flags() != 0) bind(v4::CDFC4_FORE_OR_BOTH);
    const auto delegated = [&] {
      as(other_, [&] { return status_flags(); });
      const Res opened = run(open_ops(name));
      return opened.resarray[2].opopen().resok4().delegation.delegation_type ==
             v4::OPEN_DELEGATE_WRITE;
    };
    ASSERT_TRUE(comes_true(delegated, kAfterRevocation)) << n;
    holder_ = now_acting();
    act_as(other_);
    attempt_in_session(n, open_ops(name));
    other_ = now_acting();
    act_as(holder_);
    ASSERT_TRUE(other_can_open(name)) << n;
    ASSERT_LT(n, kMost);
  }
}

TEST_F(Nfs4Allocation, failing_when_an_export_is_removed_defers_the_recall_of_its_delegations) {
  const auto serve = [this](bool data) {
    ExportOptions open;
    open.root_squash = false;
    Exports exports;
    if (data) STAG_CHECK(exports.add(1, {"/data", store_, open}).ok());
    context_.exports.replace(std::move(exports));
  };
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    ASSERT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_READ) << n;
    holder_client_.asked.clear();
    serve(false);
    allocations_until_failure = n;
    context_.gate->exports_replaced();
    pass(10ms);
    failed_ = allocations_until_failure == 0;
    allocations_until_failure = 0;
    ASSERT_TRUE(comes_true([&] {
      const std::uint32_t flags = status_flags();
      if (flags != 0) bind(v4::CDFC4_FORE_OR_BOTH);
      return !holder_client_.asked.empty();
    })) << n;
    const v4::stateid4 delegation = holder_client_.recall(0).stateid;
    ASSERT_EQ(run(return_ops(delegation)).status, v4::NFS4ERR_STALE) << n;
    serve(true);
    // No client gets another one for a while.
    for (int i = 0; i < 40; ++i) {
      status_flags();
      as(other_, [&] { return status_flags(); });
      pass(1s);
    }
    ASSERT_LT(n, kMost);
  }
}

TEST_F(Nfs4Allocation, failing_in_CB_GETATTR_leaves_no_question_to_the_holder_open) {
  v4::open_delegation4 held = open_for(kForBoth);
  ASSERT_EQ(held.delegation_type, v4::OPEN_DELEGATE_WRITE);
  holder_client_.size = 4711;
  holder_ = now_acting();
  const auto size = [&](const Res& results) {
    const auto& values = results.resarray.back().opgetattr().resok4().obj_attributes.attr_vals;
    return load_be<std::uint64_t>(values.flatten().bytes().data());
  };
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    const std::vector<Op> ask{putfh(handle_), getattr({1u << v4::FATTR4_SIZE})};
    holder_client_.change = n + 1'000'000'000;
    act_as(other_);
    attempt_in_session(n, ask);
    holder_client_.change = n + 2'000'000'000;
    const Res seen = run(ask);
    other_ = now_acting();
    act_as(holder_);
    status_flags();
    if (seen.status == v4::NFS4_OK) {
      EXPECT_EQ(size(seen), 4711u);
    } else {
      // A holder that could not be asked is to give the delegation back.
      ASSERT_EQ(seen.status, v4::NFS4ERR_DELAY) << n;
      ASSERT_EQ(run(return_ops(held.write().stateid)).status, v4::NFS4_OK) << n;
      // No client gets another one for a while.
      for (int i = 0; i < 40; ++i) {
        if (status_flags() != 0) bind(v4::CDFC4_FORE_OR_BOTH);
        as(other_, [&] { return status_flags(); });
        pass(1s);
      }
      held = open_for(kForBoth);
      ASSERT_EQ(held.delegation_type, v4::OPEN_DELEGATE_WRITE) << n;
    }
    holder_ = now_acting();
    ASSERT_LT(n, kMost);
  }
}

TEST_F(Nfs4Allocation, failing_in_LOCK_lets_the_range_be_locked_afterwards) {
  constexpr std::uint32_t kAccess = kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  const Opened file = open(open_args("locked", kAccess, true));
  const Opened others = as(other_, [&] { return create("locked"); });
  const auto lock = [&](const Opened& of, v4::clientid4 clientid, std::uint64_t offset) {
    v4::LOCK4args args{v4::WRITE_LT, false, offset, 10, {}};
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, of.stateid, 0, {clientid, Rope::copy_of(bytes_of("locker"))}};
    return std::vector<Op>{putfh(of.handle), op(v4::OP_LOCK, &Op::oplock, std::move(args))};
  };
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    const std::uint64_t offset = 100 * n;
    attempt_in_session(n, lock(file, clientid_, offset));
    const Res again = run(lock(file, clientid_, offset));
    ASSERT_EQ(again.status, v4::NFS4_OK) << n;
    const v4::stateid4 stateid = again.resarray[1].oplock().resok4().lock_stateid;
    ASSERT_EQ(run({putfh(file.handle),
                   op(v4::OP_LOCKU, &Op::oplocku, {v4::WRITE_LT, 0, stateid, offset, 10})})
                  .status,
              v4::NFS4_OK);
    ASSERT_EQ(as(other_, [&] { return run(lock(others, clientid_, offset)).status; }), v4::NFS4_OK)
        << n;
    ASSERT_LT(n, kMost);
  }
}

TEST_F(Nfs4Allocation, failing_in_CREATE_SESSION_lets_the_session_be_made_afterwards) {
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    const auto client = exchange_id("client " + std::to_string(n));
    const v4::CREATE_SESSION4args args = holder_args(client);
    attempt(n, {"", minor_, {op(v4::OP_CREATE_SESSION, &Op::opcreate_session, args)}});
    make_session(args);
    ASSERT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_READ) << n;
    ASSERT_EQ(
        run({putfh(handle_), op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, opened_})}).status,
        v4::NFS4_OK);
    ASSERT_LT(n, kMost);
  }
}

// Data passes through the server, in pieces of a MiB.
class Nfs4CopyAllocation : public Nfs4Allocation {
 protected:
  static constexpr std::size_t kPieces = 3;

  void SetUp() override {
    Nfs4Allocation::SetUp();
    minor_ = 2;
    make_session(holder_args(exchange_id("the copier")));
    constexpr std::uint32_t kAccess = kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    from_ = open(open_args("from", kAccess, true));
    to_ = open(open_args("to", kAccess, true));
    for (std::uint64_t i = 0; i < 2 * kPieces; ++i)
      ASSERT_EQ(run({putfh(from_.handle),
                     write_op(from_.stateid, i << 19, std::string(std::size_t{1} << 19, 'x'))})
                    .status,
                v4::NFS4_OK);
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    const auto without_copy = std::make_shared<vfs::testing::SteppedStore>(
        store_, std::make_shared<vfs::testing::FailingSteps>(
                    [](vfs::testing::Point point) -> std::optional<vfs::Status> {
                      if (point.operation == vfs::testing::Called::Copy)
                        return vfs::Status::NotSupported;
                      return std::nullopt;
                    }));
    STAG_CHECK(exports.add(1, {"/data", without_copy, open}).ok());
    context_.exports.replace(std::move(exports));
  }
  ~Nfs4CopyAllocation() override {
    bool ended = false;
    nfs4_.wind_up([&] { ended = true; });
    loop_.drain();
    EXPECT_TRUE(ended);
  }
  std::vector<Op> copy_ops() {
    return {putfh(from_.handle), op(v4::OP_SAVEFH), putfh(to_.handle),
            op(v4::OP_COPY, &Op::opcopy,
               v4::COPY4args{from_.stateid, to_.stateid, 0, 0, 0, true, false, {}})};
  }

  Opened from_, to_;
};

TEST_F(Nfs4CopyAllocation, failing_leaves_the_place_of_the_copy_free) {
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    bind(v4::CDFC4_FORE_OR_BOTH);  // It is found out anew whether the client can be called.
    attempt_in_session(n, copy_ops());
    ASSERT_LT(n, kMost);
  }
  bind(v4::CDFC4_FORE_OR_BOTH);
  pass(2s);
  const Res copied = run(copy_ops());
  ASSERT_EQ(copied.status, v4::NFS4_OK);
  EXPECT_EQ(copied.resarray[3].opcopy().cr_resok4().cr_response.wr_callback_id.size(), 1u)
      << "it goes on after its answer, as the first one did";
}

class Nfs4CopyFromServerAllocation : public Failing<Nfs4CopiesServed> {
 protected:
  // Whether the client may have as many copies as without the one that failed. Each takes its place
  // as long as its source hangs.
  ::testing::AssertionResult all_places_are_free() {
    const v4::COPY4args saved = args_;
    args_.ca_count = 1;
    args_.ca_synchronous = true;
    sources_.hangs_in_close = true;
    v4::nfsstat4 status = v4::NFS4_OK;
    for (std::uint32_t i = 0; i < Nfs4Options{}.copies_of_client && status == v4::NFS4_OK; ++i)
      status = run(copy_ops()).status;
    sources_.hangs_in_close = false;
    args_ = saved;
    pass(kSourcePatience + 1s);
    if (status == v4::NFS4_OK) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << status;
  }
};

TEST_F(Nfs4CopyFromServerAllocation, failing_leaves_no_copy_whose_end_the_client_is_not_told) {
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    sources_.gate = kPiece;
    holder_client_.asked.clear();
    const auto results = attempt_in_session(n, copy_ops());
    sources_.gate = ~std::uint64_t{0};
    pass(2s);
    if (results && results->status == v4::NFS4_OK &&
        !results->resarray.back().opcopy().cr_resok4().cr_requirements.cr_synchronous) {
      ASSERT_EQ(holder_client_.asked.size(), 1u) << n;
    }
    ASSERT_TRUE(all_places_are_free()) << n;
    ASSERT_LT(n, kMost);
  }
  sources_.closed = sources_.opened;  // without memory one is forgotten by its source later
}

TEST_F(Nfs4CopyFromServerAllocation, failing_does_not_keep_copies_from_being_stopped) {
  sources_.gate = kPiece;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run(copy_ops()).status, v4::NFS4_OK);
  failure_lasts = true;
  allocations_until_failure = 1;
  EXPECT_NO_THROW(nfs4_.stop_copies_from_servers());
  allocations_until_failure = 0;
  failure_lasts = false;
  sources_.closed = sources_.opened;  // as above
}

// What is done of an end that failed must not keep it from being done again.
struct WithRecords {
  vfs::testing::Folder folder{"/tmp"};
  const std::unique_ptr<recovery::Recovery> recovery = [this] {
    auto opened = recovery::Recovery::open(folder.path() / "db", 90, nullptr);
    STAG_CHECK(opened.ok());
    return *std::move(opened);
  }();
};
class RecordedServed : private WithRecords, public Nfs4Served {
 protected:
  RecordedServed() : Nfs4Served(with(recovery.get())) {}
  static Nfs4Options with(recovery::Recovery* recovery) {
    Nfs4Options options;
    options.recovery = recovery;
    return options;
  }
};
template <class Fixture>
class FailingEnds : public Failing<Fixture> {
 protected:
  // A client that nobody hears of any more has a file to itself, and another one wants it.
  void fail_each_allocation() {
    this->failed_ = true;
    for (std::size_t n = 1; this->failed_; ++n) {
      const std::string name = "file " + std::to_string(n);
      this->set_up_session("lapses " + std::to_string(n));
      v4::OPEN4args alone = this->open_args(name, v4::OPEN4_SHARE_ACCESS_BOTH, true);
      alone.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
      ASSERT_EQ(this->open(alone).status, v4::NFS4_OK) << n;
      this->loop_.pass(92s);
      this->set_up_session("wants " + std::to_string(n));
      ASSERT_EQ(this->create("another").status, v4::NFS4_OK) << "it is recorded now";
      this->attempt_in_session(n, {putrootfh(), lookup("data"),
                                   op(v4::OP_OPEN, &Op::opopen,
                                      this->open_args(name, v4::OPEN4_SHARE_ACCESS_BOTH, false)),
                                   getfh()});
      ASSERT_TRUE(this->comes_true([&] { return this->create(name).status == v4::NFS4_OK; }, 10s))
          << n;
      ASSERT_LT(n, kMost);
    }
  }
};

class Nfs4EndAllocation : public FailingEnds<Nfs4Served> {};

TEST_F(Nfs4EndAllocation, failing_defers_the_end_of_a_lapsed_client) {
  fail_each_allocation();
}

class Nfs4RecordedEndAllocation : public FailingEnds<RecordedServed> {};

TEST_F(Nfs4RecordedEndAllocation, failing_defers_the_end_of_a_lapsed_client) {
  fail_each_allocation();
}

class FailingStart : public Failing<Nfs4Start> {
 public:
  using Failing::attempt;
  using Failing::failed_;
  using Failing::Failing;
};

class Nfs4DestroyAllocation : public Nfs4RestartServed {
 protected:
  Nfs4DestroyAllocation() { worker_ = std::make_shared<HeldExecutor>(true); }

  // A client that could claim more has reclaimed a file, and closed it.
  FailingStart& restart_with_a_record(const std::string& records) {
    Nfs4Start& first = start(records.c_str());
    first.set_up_session();
    opened_ = first.create("file");
    EXPECT_EQ(opened_.status, v4::NFS4_OK);
    recoveries_.push_back(*recovery::Recovery::open(folder_.path() / records, 90, worker_));
    Nfs4Options options;
    options.recovery = recoveries_.back().get();
    auto made = std::make_unique<FailingStart>(options, store_);
    FailingStart& second = *made;
    starts_.push_back(std::move(made));
    second.nfs4_.watch_leases(second.loop_);
    second.set_up_session("a client", false);
    const Nfs4Start::Opened reclaimed = second.reclaim(opened_.handle);
    EXPECT_EQ(reclaimed.status, v4::NFS4_OK);
    EXPECT_EQ(second.close(reclaimed), v4::NFS4_OK);
    EXPECT_EQ(second.destroy_session(), v4::NFS4_OK);
    EXPECT_TRUE(second.grace());
    return second;
  }
};

TEST_F(Nfs4DestroyAllocation, failing_in_DESTROY_CLIENTID_leaves_no_record_and_nobody_to_wait_for) {
  bool failed = true;
  for (std::size_t n = 1; failed; ++n) {
    const std::string records = "db " + std::to_string(n);
    FailingStart& second = restart_with_a_record(records);
    const Op destroy = op(v4::OP_DESTROY_CLIENTID, &Op::opdestroy_clientid,
                          v4::DESTROY_CLIENTID4args{second.clientid_});
    second.attempt(n, {"tag", 1, {destroy}});
    failed = second.failed_;
    const v4::nfsstat4 again = second.destroy_clientid();
    ASSERT_TRUE(again == v4::NFS4_OK || again == v4::NFS4ERR_STALE_CLIENTID) << again;
    second.loop_.pass(10s);
    ASSERT_FALSE(second.grace()) << n;
    ASSERT_FALSE(recoveries_.back()->unremoved()) << n;
    ASSERT_FALSE(start(records.c_str()).grace()) << n;
    ASSERT_LT(n, kMost);
    starts_.clear();
    recoveries_.clear();
  }
}

// A request whose retry waits for it, on another connection.
class Nfs4RetryAllocation : public Failing<Nfs4Served> {
 protected:
  Nfs4RetryAllocation() {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    STAG_CHECK(
        exports.add(1, {"/data", std::make_shared<vfs::testing::SteppedStore>(store_, held_), open})
            .ok());
    context_.exports.replace(std::move(exports));
  }
  ~Nfs4RetryAllocation() override {
    held_->release_all();
    loop_.drain();
  }
  // It lives as long as its call.
  std::weak_ptr<const Sent> send(rpc::Channel& by, std::vector<Op> operations) {
    via_ = &by;
    const auto sent =
        std::make_shared<Sent>(*this, v4::COMPOUND4args{"", 1, std::move(operations)});
    via_ = &channel_;
    detach(call(sent));
    loop_.drain();
    return sent;
  }
  void begin(bool cachethis) {
    const std::vector<Op> operations{sequence(cachethis), putrootfh(), lookup("data"),
                                     op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{"no file"})};
    send(channel_, operations);
    again_ = send(second_, operations);
    ASSERT_EQ(held_->waiting.size(), 1u);
    ASSERT_FALSE(again_.expired());
  }
  // The loop takes so many functions before it asks for memory for the next ones.
  void leave_room(int functions) {
    const std::ptrdiff_t before = live_allocations;
    while (live_allocations == before) loop_.post([] {});
    for (int i = functions; i < kFunctions; ++i) loop_.post([] {});
    loop_.drain();
  }
  static constexpr int kFunctions = 8;  // that it has memory for at once

  const std::shared_ptr<vfs::testing::HeldSteps> held_ =
      std::make_shared<vfs::testing::HeldSteps>([](vfs::testing::Point point) {
        using vfs::testing::Called;
        return point == vfs::testing::Point{Called::Remove, vfs::testing::Point::When::Begin};
      });
  LoopbackChannel second_{loop_, server_};
  std::weak_ptr<const Sent> again_;
};

TEST_F(Nfs4RetryAllocation, failing_as_the_first_ends_lets_its_retry_wait_for_ten_seconds) {
  for (int i = 0; i < 2 * kFunctions; ++i) {
    failed_ = true;
    for (std::size_t n = 1; failed_; ++n) {
      leave_room(i % kFunctions);
      begin(i < kFunctions);
      allocations_until_failure = n;
      try {
        held_->release(0);
      } catch (const std::bad_alloc&) {
      }
      pass(1500ms);
      failed_ = allocations_until_failure == 0;
      allocations_until_failure = 0;
      pass(10s);
      ASSERT_TRUE(again_.expired()) << n;
      ASSERT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "the slot is of use";
      ASSERT_LT(n, kMost);
    }
  }
}

TEST_F(Nfs4RetryAllocation, failing_in_DESTROY_SESSION_lets_a_retry_wait_for_ten_seconds) {
  int clients = 0;
  for (int i = 0; i < kFunctions; ++i) {
    failed_ = true;
    for (std::size_t n = 1; failed_; ++n) {
      set_up_session("client " + std::to_string(++clients));
      leave_room(i);
      begin(false);
      attempt(n, {"",
                  1,
                  {op(v4::OP_DESTROY_SESSION, &Op::opdestroy_session,
                      v4::DESTROY_SESSION4args{session_})}});
      pass(10s);
      ASSERT_TRUE(again_.expired()) << n;
      held_->release(0);
      loop_.drain();
      const v4::nfsstat4 later = destroy_session();
      ASSERT_TRUE(later == v4::NFS4_OK || later == v4::NFS4ERR_BADSESSION) << later;
      ASSERT_EQ(destroy_clientid(), v4::NFS4_OK);
      ASSERT_LT(n, kMost);
    }
  }
}

class Nfs40Allocation : public Failing<Nfs40CallbacksServed> {
 protected:
  std::vector<Op> setclientid_ops(const std::string& id) {
    v4::SETCLIENTID4args args;
    args.client.id = Rope::copy_of(bytes_of(id));
    args.callback = callback_;
    return {op(v4::OP_SETCLIENTID, &Op::opsetclientid, std::move(args))};
  }
};

TEST_F(Nfs40Allocation, failing_in_SETCLIENTID_lets_the_client_be_made_afterwards) {
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    const std::string id = "client " + std::to_string(n);
    attempt(n, {"", 0, setclientid_ops(id)});
    const v4::SETCLIENTID4resok set = setclientid(id, 0);
    const std::vector<Op> confirm{op(v4::OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm,
                                     {set.clientid, set.setclientid_confirm})};
    attempt(n, {"", 0, confirm});
    ASSERT_EQ(run(confirm).status, v4::NFS4_OK) << n;
    ASSERT_EQ(renew(set.clientid), v4::NFS4_OK) << n;
    ASSERT_LT(n, kMost);
  }
}

TEST_F(Nfs40Allocation, failing_in_a_callback_does_not_keep_the_file_for_ever) {
  int owners = 0;
  const auto open_by_another = [&] {
    const v4::clientid4 before = std::exchange(client_, other_);
    std::vector<Op> ops{putrootfh(), lookup("data"),
                        open_op(1, "file", "owner " + std::to_string(++owners))};
    client_ = before;
    return ops;
  };
  const auto renew_both = [&] {
    renew(other_);
    renew(holder_);
  };
  failed_ = true;
  for (std::size_t n = 1; failed_; ++n) {
    // Its opens end with its last incarnation.
    other_ = set_up_client("another", static_cast<std::uint8_t>(2 + n % 200));
    const auto delegated = [&] {
      renew_both();
      return open_again().delegation_type == v4::OPEN_DELEGATE_WRITE;
    };
    ASSERT_TRUE(comes_true(delegated, kAfterRevocation)) << n;
    attempt(n, {"", 0, open_by_another()});
    ASSERT_TRUE(comes_true([&] {
      renew_both();
      return run(open_by_another()).status == v4::NFS4_OK;
    })) << n;
    ASSERT_LT(n, kMost);
  }
}

}  // namespace
}  // namespace stag::nfs::nfs4
