// Copies that go on after COPY was answered (RFC 7862 4, 15.2, 15.8, 15.9, 16.1).
#include "nfs/export/client_names.h"
#include "nfs/v4/administration.h"
#include "nfs/v4/ops/offloads.h"
#include "testing/held_executor.h"
#include "testing/nfs/nfs4_delegations_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

constexpr std::uint64_t kCopied = 1 << 20;

// The holder of the fixture copies; data passes through the server in pieces of a MiB, and all
// reading but that of the first piece waits until the test lets it go on.
class Nfs4Offload : public Nfs4DelegationsServed {
 protected:
  using Nfs4DelegationsServed::Nfs4DelegationsServed;
  void SetUp() override {
    Nfs4DelegationsServed::SetUp();
    minor_ = 2;
    make_session(holder_args(exchange_id("the copier")));
    constexpr std::uint32_t kAccess = kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    from_ = open(open_args("from", kAccess, true));
    to_ = open(open_args("to", kAccess, true));
    for (std::uint64_t i = 0; i < 6; ++i)
      ASSERT_EQ(
          run({putfh(from_.handle), write_op(from_.stateid, i * kCopied / 2,
                                             std::string(kCopied / 2, static_cast<char>('a' + i)))})
              .status,
          v4::NFS4_OK);
    serve();
  }
  ~Nfs4Offload() override {
    bool ended = false;
    nfs4_.wind_up([&] { ended = true; });
    held_->release_all();
    loop_.drain();
    while (!held_->waiting.empty()) {
      held_->release_all();
      loop_.drain();
    }
    EXPECT_TRUE(ended);
  }
  void serve() {
    using vfs::testing::Called;
    using vfs::testing::Point;
    steps_ = [this](Point point) {
      return point.operation == Called::Read && point.when == Point::When::Begin && reads_++ > 0;
    };
    held_ = std::make_shared<vfs::testing::HeldSteps>([this](Point p) { return steps_(p); });
    const auto without_copy = std::make_shared<vfs::testing::SteppedStore>(
        store_,
        std::make_shared<vfs::testing::FailingSteps>([](Point point) -> std::optional<vfs::Status> {
          if (point.operation == Called::Copy) return vfs::Status::NotSupported;
          return std::nullopt;
        }));
    slow_ = std::make_shared<vfs::testing::SteppedStore>(without_copy, held_);
    export_as({.root_squash = false});
  }
  // To these clients; the others have it not any more.
  void export_as(const nfs::ExportOptions& options, std::string_view clients = "*",
                 std::shared_ptr<ClientNames> names = nullptr) {
    nfs::Exports exports;
    nfs::ClientRule rule = *nfs::make_client_rule(clients, options);
    rule.names = std::move(names);
    STAG_CHECK(exports.add(1, {"/data", slow_, options, {rule}}).ok());
    context_.exports.replace(std::move(exports));
  }
  // Once `worker` has asked for it, the client's is one of them.
  void export_to_names(const std::shared_ptr<HeldExecutor>& worker) {
    struct OneName final : HostNameService {
      Texts names_of(const std::string&) override { return std::vector<std::string>{"a.example"}; }
      Texts addresses_of(const std::string&) override {
        return std::vector<std::string>{"192.0.2.1"};
      }
      Result<std::string, NoAnswer> domain() override { return std::string(); }
      Result<bool, NoAnswer> is_member(const std::string&, const std::string&) override {
        return false;
      }
      Result<bool, NoAnswer> has_netgroup(const std::string&) override { return false; }
    };
    export_as({.root_squash = false}, "*.example",
              std::make_shared<ClientNames>(std::make_shared<OneName>(), worker));
  }
  void new_session(CallbackClient& by) {
    via_ = &by.channel;
    make_session(holder_args(exchange_id("the copier")));
  }
  void let_the_lease_run_out() {
    for (int i = 0; i < 2; ++i) {
      loop_.pass(60s);
      as(other_, [&] { return status_flags(); });
    }
  }
  v4::COPY4resok copy(bool synchronous = false) {
    reads_ = 0;
    v4::COPY4args args{from_.stateid, to_.stateid, 0, 0, 0, true, synchronous, {}};
    const Res results = run({putfh(from_.handle), op(v4::OP_SAVEFH), putfh(to_.handle),
                             op(v4::OP_COPY, &Op::opcopy, args)});
    loop_.drain();
    EXPECT_EQ(results.status, v4::NFS4_OK);
    if (results.status != v4::NFS4_OK) return {};
    return results.resarray[3].opcopy().cr_resok4();
  }
  v4::stateid4 begin() {
    const v4::COPY4resok ok = copy();
    EXPECT_EQ(ok.cr_response.wr_callback_id.size(), 1u);
    EXPECT_FALSE(ok.cr_requirements.cr_synchronous);
    if (ok.cr_response.wr_callback_id.empty()) return {};
    return ok.cr_response.wr_callback_id[0];
  }
  // One more piece.
  void go_on() {
    ASSERT_FALSE(held_->waiting.empty());
    held_->release(0);
    loop_.drain();
  }
  void go_on_to_the_end() {
    while (!held_->waiting.empty()) go_on();
  }
  v4::OFFLOAD_STATUS4res status(const v4::stateid4& stateid) { return status(stateid, to_); }
  v4::OFFLOAD_STATUS4res status(const v4::stateid4& stateid, const Opened& file) {
    const Res results = run({putfh(file.handle), op(v4::OP_OFFLOAD_STATUS, &Op::opoffload_status,
                                                    v4::OFFLOAD_STATUS4args{stateid})});
    return results.resarray.back().opoffload_status();
  }
  v4::nfsstat4 cancel(const v4::stateid4& stateid) {
    return run({putfh(to_.handle),
                op(v4::OP_OFFLOAD_CANCEL, &Op::opoffload_cancel, v4::OFFLOAD_CANCEL4args{stateid})})
        .status;
  }
  v4::CB_OFFLOAD4args told(std::size_t index) {
    return holder_client_.asked.at(index).argarray.at(1).opcboffload();
  }

  Opened from_, to_;
  int reads_ = 0;
  std::function<bool(vfs::testing::Point)> steps_;
  std::shared_ptr<vfs::testing::HeldSteps> held_;
  std::shared_ptr<vfs::FileSystem> slow_;
};

// Of a Call that an observer follows; it ends, and the copy goes on.
TEST(FileCopy, leaves_the_times_of_its_call_alone_once_it_goes_on_apart) {
  WorkerTime of_call;
  ExportObject file;
  file.worker_time = &of_call;
  FileCopy copy(file, file, {});
  ManualLoop loop;
  copy.go_on_at(loop, nullptr);
  for (const ExportObject* const object : {&copy.from(), &copy.to()})
    EXPECT_EQ(object->worker_time, nullptr);
}

TEST_F(Nfs4Offload, goes_on_after_the_answer_and_tells_the_end) {
  const v4::stateid4 stateid = begin();
  EXPECT_NE(stateid.seqid, 0u);
  EXPECT_TRUE(holder_client_.asked.empty());
  v4::OFFLOAD_STATUS4res now = status(stateid);
  ASSERT_EQ(now.osr_status, v4::NFS4_OK);
  EXPECT_EQ(now.osr_resok4().osr_count, kCopied);
  EXPECT_TRUE(now.osr_resok4().osr_complete.empty());
  go_on();
  EXPECT_EQ(status(stateid).osr_resok4().osr_count, 2 * kCopied);
  go_on_to_the_end();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  v4::CB_OFFLOAD4args end = told(0);
  EXPECT_EQ(end.coa_stateid, stateid);
  EXPECT_EQ(end.coa_fh, to_.handle);
  ASSERT_EQ(end.coa_offload_info.coa_status, v4::NFS4_OK);
  EXPECT_EQ(end.coa_offload_info.coa_resok4().wr_count, 3 * kCopied);
  EXPECT_TRUE(end.coa_offload_info.coa_resok4().wr_callback_id.empty());
  const v4::CB_SEQUENCE4args& sequence = holder_client_.sequence(0);
  ASSERT_EQ(sequence.csa_referring_call_lists.size(), 1u);
  EXPECT_EQ(sequence.csa_referring_call_lists[0].rcl_sessionid, session_);
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID) << "the client has answered";
}

TEST_F(Nfs4Offload, is_done_at_once_where_the_client_asks_for_it) {
  steps_ = [](vfs::testing::Point) { return false; };
  const v4::COPY4resok ok = copy(true);
  EXPECT_TRUE(ok.cr_response.wr_callback_id.empty());
  EXPECT_TRUE(ok.cr_requirements.cr_synchronous);
  EXPECT_EQ(ok.cr_response.wr_count, 3 * kCopied);
}

TEST_F(Nfs4Offload, is_done_at_once_for_a_client_that_cannot_be_called) {
  steps_ = [](vfs::testing::Point) { return false; };
  set_up_session("a client without callbacks");
  from_ = open(open_args("from", kForReading, false));
  to_ = open(open_args("to", kForBoth, false));
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
}

// It says how it would be called, on a connection that carries no callbacks.
TEST_F(Nfs4Offload, is_done_at_once_for_a_client_without_a_back_channel) {
  steps_ = [](vfs::testing::Point) { return false; };
  v4::CREATE_SESSION4args args = holder_args(exchange_id("a client without a back channel"));
  args.csa_flags = 0;
  ASSERT_EQ(make_session(args).csr_flags, 0u);
  from_ = open(open_args("from", kForReading, false));
  to_ = open(open_args("to", kForBoth, false));
  const v4::COPY4resok ok = copy();
  EXPECT_TRUE(ok.cr_response.wr_callback_id.empty());
  EXPECT_TRUE(ok.cr_requirements.cr_synchronous);
  EXPECT_EQ(ok.cr_response.wr_count, 3 * kCopied);
}

TEST_F(Nfs4Offload, is_done_at_once_for_a_client_whose_back_channel_is_lost) {
  steps_ = [](vfs::testing::Point) { return false; };
  holder_client_.disconnect();
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
}

TEST_F(Nfs4Offload, is_done_at_once_for_a_client_that_answers_no_callback) {
  steps_ = [](vfs::testing::Point) { return false; };
  holder_client_.answers = false;
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
}

// Of a server that calls nobody back over RDMA.
class Nfs4OffloadWithoutCallbacks : public Nfs4Offload {
 protected:
  Nfs4OffloadWithoutCallbacks() : Nfs4Offload(options()) {
    holder_client_.channel.origin().transport = rpc::TransportKind::Rdma;
  }
  static Nfs4Options options() {
    Nfs4Options options;
    options.rdma_callbacks = false;
    return options;
  }
};

TEST_F(Nfs4OffloadWithoutCallbacks, is_done_at_once_for_a_client_over_RDMA) {
  steps_ = [](vfs::testing::Point) { return false; };
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
}

TEST_F(Nfs4Offload, stays_until_the_client_knows_of_the_end) {
  holder_client_.statuses = {v4::NFS4ERR_DELAY};
  const v4::stateid4 stateid = begin();
  go_on_to_the_end();
  v4::OFFLOAD_STATUS4res now = status(stateid);
  ASSERT_EQ(now.osr_status, v4::NFS4_OK);
  EXPECT_EQ(now.osr_resok4().osr_count, 3 * kCopied);
  EXPECT_EQ(now.osr_resok4().osr_complete, std::vector<v4::nfsstat4>{v4::NFS4_OK});
  loop_.pass(3s);
  EXPECT_EQ(holder_client_.asked.size(), 2u);
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Offload, is_forgotten_a_lease_after_an_end_that_nobody_heard_of) {
  const v4::stateid4 stateid = begin();
  holder_client_.disconnect();
  go_on_to_the_end();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(status(stateid).osr_status, v4::NFS4_OK);
    loop_.pass(29s);
  }
  loop_.pass(5s);
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Offload, tells_why_it_failed_and_how_far_it_came) {
  const v4::stateid4 stateid = begin();
  held_->release(0, vfs::Status::Io);
  loop_.drain();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  v4::CB_OFFLOAD4args end = told(0);
  EXPECT_EQ(end.coa_stateid, stateid);
  EXPECT_EQ(end.coa_offload_info.coa_status, v4::NFS4ERR_IO);
  EXPECT_EQ(end.coa_offload_info.coa_bytes_copied(), kCopied);
}

// What its client writes afterwards is not overwritten.
TEST_F(Nfs4Offload, writes_no_more_once_it_is_answered_that_it_is_cancelled) {
  const v4::stateid4 stateid = begin();
  const TimePoint asked = loop_.now();
  const Timer piece = loop_.after(500ms, [this] { held_->release(0); });
  EXPECT_EQ(cancel(stateid), v4::NFS4_OK);
  EXPECT_EQ(loop_.now() - asked, 500ms);
  EXPECT_TRUE(held_->waiting.empty()) << "the piece was the last one";
  EXPECT_EQ(cancel(stateid), v4::NFS4ERR_BAD_STATEID);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4Offload, is_cancelled_though_its_piece_takes_long) {
  const v4::stateid4 stateid = begin();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cancel(stateid), v4::NFS4ERR_DELAY);
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID);
  go_on();
  EXPECT_TRUE(held_->waiting.empty()) << "the piece was the last one";
  EXPECT_EQ(cancel(stateid), v4::NFS4ERR_BAD_STATEID);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4Offload, is_cancelled_at_once_where_it_has_ended) {
  holder_client_.statuses = {v4::NFS4ERR_DELAY};
  const v4::stateid4 stateid = begin();
  go_on_to_the_end();
  const TimePoint asked = loop_.now();
  EXPECT_EQ(cancel(stateid), v4::NFS4_OK);
  EXPECT_EQ(loop_.now(), asked);
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Offload, is_known_to_its_client_by_file_and_stateid) {
  const v4::stateid4 stateid = begin();
  EXPECT_EQ(status(stateid, from_).osr_status, v4::NFS4ERR_BAD_STATEID);
  v4::stateid4 other = stateid;
  other.seqid = 0;
  EXPECT_EQ(status(other).osr_status, v4::NFS4ERR_BAD_STATEID) << "RFC 7862 4.8";
  other = stateid;
  other.other[11] ^= std::byte{1};
  EXPECT_EQ(status(other).osr_status, v4::NFS4ERR_BAD_STATEID);
  as(other_, [&] {
    EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID);
    EXPECT_EQ(cancel(stateid), v4::NFS4ERR_BAD_STATEID);
    return 0;
  });
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4_OK);
}

TEST_F(Nfs4Offload, is_done_at_once_beyond_a_number_of_them) {
  const std::uint32_t kOfClient = Nfs4Options{}.copies_of_client;
  std::set<std::array<std::byte, 12>> names;
  for (std::uint32_t i = 0; i < kOfClient; ++i) names.insert(begin().other);
  EXPECT_EQ(names.size(), kOfClient);
  steps_ = [](vfs::testing::Point) { return false; };
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
  go_on_to_the_end();
  EXPECT_EQ(holder_client_.asked.size(), kOfClient);
  EXPECT_EQ(copy().cr_response.wr_callback_id.size(), 1u) << "there is room again";
}

TEST_F(Nfs4Offload, is_done_at_once_beyond_a_number_that_was_changed_since) {
  begin();
  Nfs4Options now;
  now.copies_of_client = 1;
  nfs4_.change(now);
  steps_ = [](vfs::testing::Point) { return false; };
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty()) << "one goes on already";
  now.copies_of_client = 2;
  nfs4_.change(now);
  EXPECT_EQ(copy().cr_response.wr_callback_id.size(), 1u);
  now.copies = 1;
  nfs4_.change(now);
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
  go_on_to_the_end();
}

TEST_F(Nfs4Offload, ends_with_the_open_that_it_writes_by) {
  begin();
  EXPECT_EQ(close(to_), v4::NFS4_OK);
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_BAD_STATEID);
}

// RFC 8881 10.4: what it reads without an open may be delegated by the next piece.
TEST_F(Nfs4Offload, recalls_what_is_delegated_while_it_goes_on) {
  EXPECT_EQ(close(from_), v4::NFS4_OK);
  from_.stateid = {};
  begin();
  CallbackClient second(loop_, server_);
  const Party first = now_acting();
  via_ = &second.channel;
  make_session(holder_args(exchange_id("the second")));
  EXPECT_EQ(open_for(v4::OPEN4_SHARE_ACCESS_WRITE, 0, "from").delegation_type,
            v4::OPEN_DELEGATE_WRITE);
  act_as(first);
  EXPECT_TRUE(second.asked.empty());
  go_on();
  ASSERT_EQ(second.asked.size(), 1u);
  EXPECT_EQ(second.asked[0].argarray.at(1).argop, v4::OP_CB_RECALL);
  go_on_to_the_end();
}

// RFC 7862 4.8: its stateid is valid as long as the client, which makes another session (RFC 8881
// 2.10.13.1.4).
TEST_F(Nfs4Offload, goes_on_without_a_session_and_is_known_in_the_next_one) {
  const v4::stateid4 stateid = begin();
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
  go_on();
  new_session(holder_client_);
  v4::OFFLOAD_STATUS4res now = status(stateid);
  ASSERT_EQ(now.osr_status, v4::NFS4_OK);
  EXPECT_EQ(now.osr_resok4().osr_count, 2 * kCopied);
  EXPECT_TRUE(now.osr_resok4().osr_complete.empty());
  go_on_to_the_end();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(holder_client_.sequence(0).csa_sessionid, session_);
  EXPECT_EQ(told(0).coa_stateid, stateid);
  EXPECT_EQ(told(0).coa_offload_info.coa_resok4().wr_count, 3 * kCopied);
}

TEST_F(Nfs4Offload, tells_its_end_by_a_session_and_a_connection_that_were_made_after_it) {
  const v4::stateid4 stateid = begin();
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
  go_on_to_the_end();
  loop_.pass(60s);
  EXPECT_TRUE(holder_client_.asked.empty());
  CallbackClient next(loop_, server_);
  new_session(next);
  EXPECT_EQ(status(stateid).osr_resok4().osr_complete, std::vector<v4::nfsstat4>{v4::NFS4_OK});
  loop_.pass(2s);
  ASSERT_EQ(next.asked.size(), 1u);
  EXPECT_EQ(next.asked[0].argarray.at(1).opcboffload().coa_stateid, stateid);
  EXPECT_TRUE(holder_client_.asked.empty());
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID) << "the client has answered";
}

TEST_F(Nfs4Offload, counts_among_the_copies_of_its_client_until_its_end_is_told) {
  const std::uint32_t kOfClient = Nfs4Options{}.copies_of_client;
  for (std::uint32_t i = 0; i < kOfClient; ++i) begin();
  holder_client_.disconnect();
  go_on_to_the_end();
  steps_ = [](vfs::testing::Point) { return false; };
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
  holder_client_.connect();
  new_session(holder_client_);
  loop_.pass(2s);
  EXPECT_EQ(holder_client_.asked.size(), kOfClient);
  EXPECT_EQ(copy().cr_response.wr_callback_id.size(), 1u) << "there is room again";
}

// A client that comes back hears of it.
TEST_F(Nfs4Offload, ends_with_the_lease_of_its_client) {
  const v4::stateid4 stateid = begin();
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
  let_the_lease_run_out();
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  new_session(holder_client_);
  loop_.pass(2s);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_stateid, stateid);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_EXPIRED);
}

TEST_F(Nfs4Offload, is_forgotten_where_its_client_never_comes_back) {
  begin();
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
  let_the_lease_run_out();
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  let_the_lease_run_out();
  new_session(holder_client_);
  loop_.pass(2s);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4Offload, ends_with_its_client) {
  const v4::stateid4 stateid = begin();
  std::optional<EndedByAdmin> ended;
  nfs4_.administration().expire(clientid_, loop_.now(), [&](EndedByAdmin how) { ended = how; });
  loop_.drain();
  EXPECT_EQ(ended, EndedByAdmin::Yes);
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  loop_.pass(2s);
  EXPECT_TRUE(holder_client_.asked.empty());
  new_session(holder_client_);
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4ERR_BAD_STATEID);
}

// An administrator takes the open away.
TEST_F(Nfs4Offload, ends_with_the_open_that_is_revoked) {
  begin();
  EXPECT_TRUE(nfs4_.administration().revoke({to_.stateid.seqid, to_.stateid.other}));
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_ADMIN_REVOKED);
}

// What WRITE is refused with from then on, the copy ends with.
TEST_F(Nfs4Offload, ends_where_the_file_that_it_writes_becomes_read_only) {
  begin();
  export_as({.read_only = true, .root_squash = false});
  EXPECT_EQ(run({putfh(to_.handle), write_op(to_.stateid, 0, "x")}).status, v4::NFS4ERR_ROFS);
  go_on();
  EXPECT_TRUE(held_->waiting.empty()) << "the piece was the last one";
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_ROFS);
  EXPECT_EQ(told(0).coa_offload_info.coa_bytes_copied(), 2 * kCopied);
}

TEST_F(Nfs4Offload, ends_where_its_export_is_taken_out) {
  begin();
  context_.exports.replace({});
  EXPECT_EQ(run({putfh(to_.handle), write_op(to_.stateid, 0, "x")}).status, v4::NFS4ERR_STALE);
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_STALE);
}

TEST_F(Nfs4Offload, ends_where_its_client_is_admitted_no_more) {
  begin();
  export_as({.root_squash = false}, "198.51.100.0/24");
  EXPECT_EQ(run({putfh(to_.handle), write_op(to_.stateid, 0, "x")}).status, v4::NFS4ERR_ACCESS);
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_ACCESS);
}

TEST_F(Nfs4Offload, goes_on_as_whom_its_client_is_by_the_present_exports) {
  begin();
  export_as({.root_squash = true});
  EXPECT_EQ(run({putfh(to_.handle), write_op(to_.stateid, 0, "x")}).status, v4::NFS4ERR_ACCESS);
  go_on_to_the_end();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_ACCESS);
  EXPECT_EQ(told(0).coa_offload_info.coa_bytes_copied(), 2 * kCopied);
}

TEST_F(Nfs4Offload, goes_on_where_exports_are_replaced_by_the_same) {
  begin();
  export_as({.root_squash = false});
  go_on_to_the_end();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_resok4().wr_count, 3 * kCopied);
}

TEST_F(Nfs4Offload, waits_for_the_name_that_its_client_is_admitted_by) {
  const auto worker = std::make_shared<HeldExecutor>();
  begin();
  export_to_names(worker);
  go_on();
  EXPECT_TRUE(held_->waiting.empty());
  EXPECT_TRUE(holder_client_.asked.empty());
  worker->run_all();
  loop_.pass(100ms);
  go_on_to_the_end();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_resok4().wr_count, 3 * kCopied);
}

TEST_F(Nfs4Offload, ends_with_the_server_though_nobody_knows_the_name_of_its_client) {
  const auto worker = std::make_shared<HeldExecutor>();
  begin();
  export_to_names(worker);
  go_on();
  bool ended = false;
  nfs4_.wind_up([&] { ended = true; });
  loop_.pass(100ms);
  EXPECT_TRUE(ended);
  worker->give_all_back();
}

TEST_F(Nfs4Offload, ends_where_nobody_knows_the_name_of_its_client_for_long) {
  const auto worker = std::make_shared<HeldExecutor>();
  begin();
  export_to_names(worker);
  go_on();
  loop_.pass(11s);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_DELAY);
  worker->give_all_back();
}

// A disk could not be unmounted as long as nobody is told.
TEST_F(Nfs4Offload, keeps_no_file_system_once_it_has_ended) {
  const v4::stateid4 stateid = begin();
  holder_client_.disconnect();
  const std::weak_ptr<vfs::FileSystem> exported = slow_;
  slow_.reset();
  context_.exports.replace({});
  EXPECT_FALSE(exported.expired()) << "a piece is being copied";
  go_on();
  EXPECT_TRUE(exported.expired());
  holder_client_.connect();
  new_session(holder_client_);
  loop_.pass(2s);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_stateid, stateid);
}

// Nor that of another export that is removed, as long as a store hangs.
TEST_F(Nfs4Offload, keeps_no_file_system_in_use_but_that_of_its_files) {
  auto disk = std::make_shared<vfs::MemoryFileSystem>();
  const std::weak_ptr<vfs::FileSystem> removed = disk;
  nfs::Exports exports;
  STAG_CHECK(exports.add(1, {"/data", slow_, {.root_squash = false}}).ok());
  STAG_CHECK(exports.add(2, {"/disk", std::move(disk), {}}).ok());
  context_.exports.replace(std::move(exports));
  begin();
  export_as({.root_squash = false});
  EXPECT_TRUE(removed.expired());
  go_on();
}

TEST_F(Nfs4Offload, ends_with_the_server) {
  begin();
  bool ended = false;
  nfs4_.wind_up([&] { ended = true; });
  loop_.drain();
  EXPECT_FALSE(ended);
  go_on();
  EXPECT_TRUE(ended);
  steps_ = [](vfs::testing::Point) { return false; };
  EXPECT_TRUE(copy().cr_response.wr_callback_id.empty());
}

}  // namespace
}  // namespace stag::nfs::nfs4
