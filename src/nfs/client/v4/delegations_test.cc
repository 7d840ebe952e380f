// Files that are delegated to the client: what it does without asking, and that
// it stops when the server wants them back (RFC 8881 sections 10.4, 20).
#include <gtest/gtest.h>

#include "base/pause.h"
#include "nfs/client/v4/callback_service.h"
#include "testing/nfs/delegated_world.h"

namespace stag::nfs::client {
namespace {

using nfs4::CallbackService;
using testing::DelegatedWorld;
using testing::Nfs4ClientWorld;

constexpr std::uint32_t kReading = access::kRead;
constexpr std::uint32_t kReadWrite = access::kRead | access::kModify;

class Nfs4Delegated : public ::testing::TestWithParam<std::uint32_t>, public DelegatedWorld {
 protected:
  Nfs4Delegated() : DelegatedWorld(GetParam()) { begin(); }
  void TearDown() override {
    run(closed());
    EXPECT_TRUE(clients().empty());
    channel.server->nfs4.stop_callbacks();
  }
  v4::nfsstat4 bind_fore_only(const v4::sessionid4& session) {
    rpc::Client client(channel, {}, options.calls.credentials);
    v4::COMPOUND4args args{"", GetParam(), {}};
    args.argarray.emplace_back().argop = v4::OP_BIND_CONN_TO_SESSION;
    args.argarray[0].opbind_conn_to_session() = {session, v4::CDFC4_FORE, false};
    const auto result = loop.run(client.call<v4::NFSPROC4_COMPOUND>(args));
    STAG_CHECK(result && result->ok());
    return (*result)->status;
  }
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4Delegated, ::testing::Values(1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4Delegated, a_file_is_opened_looked_at_and_closed_without_a_call) {
  read_it();
  EXPECT_EQ(delegations(), 1u);
  EXPECT_EQ(calls_of([this] {
              const Opened open = must(files().open(file, kReading));
              EXPECT_EQ(open.attributes.size, 3u);
              must(files().getattr(file));
              must(files().close(open.file));
            }),
            0);
  EXPECT_EQ(calls_of([this] { read_it(); }), 1) << "the READ";
}

TEST_P(Nfs4Delegated, a_file_that_another_client_writes_is_given_back_first) {
  const Opened open = must(files().open(file, kReading));
  EXPECT_EQ(delegations(), 1u);
  EXPECT_TRUE(other_writes("written").ok());
  EXPECT_EQ(delegations(), 0u);
  EXPECT_EQ(must(files().getattr(file)).size, 7u);
  std::array<std::byte, 8> to;
  EXPECT_EQ(must(files().read(open.file, 0, to)).count, 7u) << "it stays open";
  must(files().close(open.file));
  EXPECT_EQ(clients().front().held.opens, 0u);
  read_it();
  EXPECT_EQ(delegations(), 0u) << "it was just recalled";
  loop.pass(std::chrono::seconds(32));
  read_it();
  EXPECT_EQ(delegations(), 1u) << "there is another one";
}

TEST_P(Nfs4Delegated, an_open_that_nobody_uses_is_closed_with_its_delegation) {
  read_it();
  EXPECT_EQ(clients().front().held.opens, 1u);
  EXPECT_TRUE(other_writes("written").ok());
  EXPECT_EQ(clients().front().held.opens, 0u);
}

TEST_P(Nfs4Delegated, attributes_that_this_client_changes_itself_are_asked_for_again) {
  read_it();
  const Opened open = must(files().open(file, kReadWrite));
  must(files().write(open.file, 3, bytes_of("er")));
  EXPECT_EQ(must(files().getattr(file)).size, 5u);
  SetAttributes empty;
  empty.size = 0;
  must(files().setattr(file, empty));
  EXPECT_EQ(must(files().getattr(file)).size, 0u);
  must(files().link(file, files().root(), "second"));
  EXPECT_EQ(must(files().getattr(file)).links, 2u);
  must(files().close(open.file));
}

TEST_P(Nfs4Delegated, stays_open_after_a_restart_but_is_not_delegated_any_more) {
  read_it();
  const Opened open = must(files().open(file, kReading));
  channel.server->nfs4.stop_callbacks();
  channel.restart();
  start_callbacks();
  EXPECT_TRUE(other_writes("changed").ok());
  std::array<std::byte, 8> to;
  EXPECT_EQ(must(files().read(open.file, 0, to)).count, 7u);
  EXPECT_EQ(must(files().getattr(file)).size, 7u);
  must(files().close(open.file));
}

TEST_P(Nfs4Delegated, a_server_that_cannot_call_back_gets_everything_back) {
  read_it();
  EXPECT_EQ(delegations(), 1u);
  reverse.reset();
  connection->end();
  loop.pass(std::chrono::minutes(2));
  EXPECT_EQ(delegations(), 0u);
  EXPECT_TRUE(other_writes("changed").ok());
  EXPECT_EQ(must(files().getattr(file)).size, 7u);
}

TEST_P(Nfs4Delegated, a_connection_that_was_made_again_is_delegated_files_again) {
  read_it();
  const v4::sessionid4 before = protocol->session_id();
  connection->end();
  connect();
  must(files().getattr(files().root()));
  loop.drain();
  EXPECT_EQ(delegations(), 0u) << "while the server could not ask for it";
  read_it();
  EXPECT_EQ(delegations(), 1u);
  EXPECT_EQ(protocol->session_id(), before);
  EXPECT_TRUE(other_writes("changed").ok());
  EXPECT_EQ(delegations(), 0u) << "it could ask for it";
}

// As Linux's server does with the first call that comes by a connection.
TEST_P(Nfs4Delegated, a_connection_that_is_bound_to_the_fore_channel_gets_another_session) {
  read_it();
  const v4::sessionid4 before = protocol->session_id();
  connection->end();
  connect();
  EXPECT_EQ(bind_fore_only(before), v4::NFS4_OK);
  must(files().getattr(files().root()));
  loop.drain();
  EXPECT_NE(protocol->session_id(), before);
  read_it();
  EXPECT_EQ(delegations(), 1u);
  EXPECT_EQ(bind_fore_only(before), v4::NFS4_OK) << "for calls that are still answered";
  loop.pass(std::chrono::minutes(1));
  EXPECT_EQ(bind_fore_only(before), v4::NFS4ERR_BADSESSION);
  EXPECT_TRUE(other_writes("changed").ok());
}

TEST_P(Nfs4Delegated, more_than_the_most_are_given_back_the_oldest_first) {
  std::vector<Handle> all;
  const std::size_t most = nfs4::Delegations::kMost;
  for (std::size_t i = 0; i < most + 10; ++i) {
    all.push_back(must(files().create(files().root(), std::to_string(i), {.mode = 0644})).handle);
    must(files().close(must(files().open(all.back(), kReading)).file));
  }
  loop.drain();
  EXPECT_EQ(delegations(), most);
  EXPECT_EQ(calls_of([&] { must(files().close(must(files().open(all.back(), kReading)).file)); }),
            0);
  EXPECT_GT(calls_of([&] { must(files().close(must(files().open(all[0], kReading)).file)); }), 0);
}

TEST(Nfs4DelegatedEnd, waits_once_for_a_silent_server_and_not_for_each_delegation) {
  DelegatedWorld world(1);
  world.begin();
  for (int i = 0; i < 300; ++i) {
    const std::string name = std::to_string(i);
    FileSystem& files = world.files();
    const Handle file = world.must(files.create(files.root(), name, {.mode = 0644})).handle;
    world.must(files.close(world.must(files.open(file, kReading)).file));
  }
  EXPECT_EQ(world.delegations(), 300u);
  world.channel.fall_silent();
  const TimePoint begun = world.loop.now();
  world.run(world.closed());
  EXPECT_LE(world.loop.now() - begun, std::chrono::seconds(4)) << "twice the time of a goodbye";
  world.channel.server->nfs4.stop_callbacks();
}

TEST_P(Nfs4Delegated, a_file_that_is_removed_is_closed_with_its_delegation) {
  read_it();
  must(files().remove(files().root(), "file"));
  loop.drain();
  EXPECT_EQ(delegations(), 0u);
  EXPECT_EQ(clients().front().held.opens, 0u);
}

TEST_P(Nfs4Delegated, a_file_that_another_one_replaces_is_closed_with_its_delegation) {
  read_it();
  must(files().create(files().root(), "new", {.mode = 0644}));
  must(files().rename(files().root(), "new", files().root(), "file"));
  loop.drain();
  EXPECT_EQ(delegations(), 0u);
  EXPECT_EQ(clients().front().held.opens, 0u);
}

TEST_P(Nfs4Delegated, a_delegation_whose_return_was_lost_is_returned_again) {
  read_it();
  SetAttributes mode;
  mode.mode = 0600;
  loop.drain();
  channel.accident = testing::Accident::Swallowed;
  channel.at = channel.calls + 1;  // CLOSE, in front of the SETATTR
  must(files().setattr(file, mode));
  loop.drain();
  EXPECT_EQ(delegations(), 1u);
  loop.pass(std::chrono::seconds(20));
  EXPECT_EQ(delegations(), 0u);
  EXPECT_EQ(clients().front().held.opens, 0u);
}

TEST_P(Nfs4Delegated, has_the_server_asked_again_when_the_lease_has_run_out) {
  read_it();
  loop.drain();
  channel.accident = testing::Accident::Swallowed;
  channel.at = channel.calls + 1;
  channel.times = 1 << 20;
  loop.pass(std::chrono::minutes(2));
  EXPECT_FALSE(run(files().getattr(file)).ok()) << "nobody answers";
  channel.accident = testing::Accident::None;
  must(files().getattr(file));
  loop.drain();
  EXPECT_EQ(delegations(), 0u) << "it may have been revoked";
}

Task<void> open_and_wait(FileSystem& files, Handle file) {
  static_cast<void>(co_await files.open(file, kReading));
}

TEST(Nfs4DelegatedLease, is_no_longer_for_an_answer_that_comes_late) {
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    DelegatedWorld world(minor);
    world.begin();
    const Handle other = world.must(world.files().create(world.files().root(), "other", {})).handle;
    world.read_it();
    ASSERT_EQ(world.delegations(), 1u);
    world.channel.accident = testing::Accident::Slow;
    world.channel.at = world.channel.calls + 1;
    world.channel.answer_after = std::chrono::seconds(80);
    detach(open_and_wait(world.files(), other));
    world.channel.accident = testing::Accident::Swallowed;
    world.channel.at = world.channel.calls + 1;
    world.channel.times = 1 << 20;
    world.loop.pass(std::chrono::seconds(85));
    EXPECT_TRUE(world.run(world.files().getattr(world.file)).ok()) << "the server is not asked";
    world.loop.pass(std::chrono::seconds(10));
    EXPECT_FALSE(world.run(world.files().getattr(world.file)).ok())
        << "version 4." << minor << ": the server is asked, and does not answer";
    world.channel.accident = testing::Accident::None;
    world.run(world.closed());
    world.channel.server->nfs4.stop_callbacks();
  }
}

// Files that are delegated for writing (RFC 8881 10.4.3, 10.4.4).
class Nfs4WriteDelegated : public Nfs4Delegated {
 protected:
  void write_it(std::string_view text) {
    const Opened open = must(files().open(file, kReadWrite));
    must(files().write(open.file, 0, bytes_of(text)));
    must(files().close(open.file));
  }
  Task<bool> flush(Handle of) {
    EXPECT_EQ(delegations(), 1u) << "before it is given back";
    flushed.push_back(of);
    co_return flushed.size() > unsafe;
  }
  // What another client sees, who does not open the file.
  Attributes others_see() {
    FileSystemOptions plain = options;
    plain.calls.delegations = false;
    auto other = must(nfs4::Nfs4::connect(channel, plain.calls));
    FileSystem theirs(other, files().root(), "/data", plain);
    const Attributes seen = must(theirs.getattr(file));
    run(ended(other));
    return seen;
  }
  std::vector<Handle> flushed;
  std::size_t unsafe = 0;  // how often data may still be written again after a flush
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4WriteDelegated, ::testing::Values(1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4WriteDelegated, a_file_is_opened_and_closed_for_reading_and_writing_without_a_call) {
  write_it("first");
  EXPECT_EQ(delegations(), 1u);
  EXPECT_EQ(calls_of([this] {
              const Opened open = must(files().open(file, kReadWrite));
              must(files().close(open.file));
            }),
            1)
      << "the attributes, which the WRITE has changed";
  EXPECT_EQ(calls_of([this] { must(files().close(must(files().open(file, kReadWrite)).file)); }),
            0);
  EXPECT_EQ(calls_of([this] { read_it(); }), 1) << "the READ";
  EXPECT_EQ(calls_of([this] { write_it("second"); }), 1) << "the WRITE";
}

TEST_P(Nfs4WriteDelegated, an_open_for_reading_alone_is_not_used_for_writing) {
  read_it();
  EXPECT_EQ(delegations(), 1u);
  write_it("written");
  EXPECT_EQ(must(files().getattr(file)).size, 7u);
}

TEST_P(Nfs4WriteDelegated, a_file_that_another_client_writes_is_given_back_when_it_is_flushed) {
  files().set_flush([this](Handle of) { return flush(of); });
  const Opened open = must(files().open(file, kReadWrite));
  must(files().write(open.file, 0, bytes_of("mine")));
  EXPECT_TRUE(other_writes("theirs").ok());
  EXPECT_EQ(delegations(), 0u);
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0], file);
  must(files().write(open.file, 6, bytes_of("more")));
  EXPECT_EQ(must(files().getattr(file)).size, 10u) << "it stays open";
  must(files().close(open.file));
  files().set_flush({});
}

TEST_P(Nfs4WriteDelegated, a_file_is_not_given_back_before_what_was_written_is_safe) {
  files().set_flush([this](Handle of) { return flush(of); });
  unsafe = 3;
  write_it("mine");
  EXPECT_TRUE(other_writes("theirs").ok());
  EXPECT_EQ(flushed.size(), 4u);
  EXPECT_EQ(delegations(), 0u);
  files().set_flush({});
}

TEST_P(Nfs4WriteDelegated, a_file_whose_data_is_never_safe_is_given_back_after_a_lease) {
  files().set_flush([this](Handle of) { return flush(of); });
  unsafe = 1000;
  write_it("mine");
  SetAttributes mode;
  mode.mode = 0400;
  must(files().setattr(file, mode));
  const TimePoint asked = loop.now();
  loop.drain();
  EXPECT_EQ(delegations(), 1u);
  while (delegations() > 0 && loop.now() < asked + std::chrono::hours(1))
    loop.pass(std::chrono::seconds(1));
  const Duration lease = channel.server->nfs4.administration().lease();
  EXPECT_GE(loop.now() - asked, lease);
  EXPECT_LT(loop.now() - asked, 2 * lease);
  files().set_flush({});
}

TEST_P(Nfs4WriteDelegated, the_server_is_told_the_size_and_that_the_file_was_modified) {
  write_it("a longer text");
  EXPECT_EQ(others_see().size, 13u);
  EXPECT_EQ(delegations(), 1u) << "to look is no reason to give it back";
  const Opened open = must(files().open(file, kReadWrite));
  must(files().write(open.file, 13, bytes_of(", and more")));
  EXPECT_EQ(others_see().size, 23u);
  SetAttributes shorter;
  shorter.size = 2;
  must(files().setattr(file, shorter));
  EXPECT_EQ(others_see().size, 2u);
  must(files().close(open.file));
  EXPECT_EQ(delegations(), 1u);
}

TEST_P(Nfs4WriteDelegated, a_change_of_mode_gives_the_delegation_back) {
  write_it("text");
  SetAttributes mode;
  mode.mode = 0400;
  must(files().setattr(file, mode));
  loop.drain();
  EXPECT_EQ(delegations(), 0u);
}

TEST_P(Nfs4WriteDelegated, answers_no_other_user_without_the_server) {
  write_it("text");
  FileSystemOptions theirs = options;
  theirs.calls.credentials = rpc::Credentials::sys("tests", 1000, 1000);
  FileSystem others = files().with(theirs);
  const Outcome<Opened> open = run(others.open(file, kReadWrite));
  ASSERT_FALSE(open.ok()) << "0644, of another user";
  EXPECT_EQ(open.error().status, Status::Access);
}

TEST_P(Nfs4WriteDelegated, stays_open_after_a_restart_but_is_not_delegated_any_more) {
  const Opened open = must(files().open(file, kReadWrite));
  must(files().write(open.file, 0, bytes_of("mine")));
  channel.server->nfs4.stop_callbacks();
  channel.restart();
  start_callbacks();
  must(files().write(open.file, 4, bytes_of("!")));
  EXPECT_TRUE(other_writes("changed").ok());
  EXPECT_EQ(must(files().getattr(file)).size, 7u);
  must(files().close(open.file));
}

TEST_P(Nfs4WriteDelegated, locks_end_when_the_last_who_has_the_file_open_closes_it) {
  constexpr LockOwner kMine{1, 1}, kYours{1, 2};
  constexpr FileLock kWhole{0, 0, true};
  const Opened first = must(files().open(file, kReadWrite));
  const Opened second = must(files().open(file, kReadWrite));
  must(files().lock(first.file, kMine, kWhole));
  must(files().close(first.file));
  loop.drain();
  EXPECT_EQ(delegations(), 1u);
  EXPECT_FALSE(run(files().lock(second.file, kYours, kWhole)).ok()) << "their open is one";
  must(files().close(second.file));
  loop.drain();
  const Opened third = must(files().open(file, kReadWrite));
  must(files().lock(third.file, kYours, kWhole));
  must(files().unlock(third.file, kYours, kWhole));
  const std::uint32_t before = delegations();
  must(files().close(third.file));
  loop.drain();
  EXPECT_EQ(delegations(), before) << "what is not locked stays delegated";
}

// What a server asks that is no recall of one delegation, on the wire of the
// back channel.
class Nfs4Callbacks : public Nfs4Delegated {
 protected:
  v4::CB_COMPOUND4res ask(v4::nfs_cb_argop4 operation, bool with_sequence = true) {
    v4::CB_COMPOUND4args args;
    args.minorversion = GetParam();
    if (with_sequence) {
      args.argarray.emplace_back().argop = v4::OP_CB_SEQUENCE;
      // Slot 9 is not one that the server has used.
      args.argarray[0].opcbsequence() = {session, ++sequence, 9, 9, false, {}};
    }
    args.argarray.push_back(std::move(operation));
    rpc::Client client(*reverse, {}, rpc::Credentials::sys("server", 0, 0));
    auto answer = loop.run(call(client, args));
    STAG_CHECK(answer && answer->ok());
    return **answer;
  }
  v4::nfsstat4 status_of(v4::nfs_cb_opnum4 number) {
    v4::nfs_cb_argop4 operation;
    operation.argop = number;
    return ask(std::move(operation)).status;
  }
  static Task<rpc::CallResult<v4::CB_COMPOUND4res>> call(rpc::Client& client,
                                                         const v4::CB_COMPOUND4args& args) {
    co_return co_await client.call<v4::CB_COMPOUND>(args);
  }
  v4::sessionid4 session = protocol->session_id();
  v4::sequenceid4 sequence = 0;
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4Callbacks, ::testing::Values(1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4Callbacks, RECALL_ANY_gives_back_as_many_as_the_server_wants) {
  read_it();
  v4::nfs_cb_argop4 operation;
  operation.argop = v4::OP_CB_RECALL_ANY;
  operation.opcbrecall_any().craa_objects_to_keep = 0;
  EXPECT_EQ(ask(std::move(operation)).status, v4::NFS4_OK);
  loop.drain();
  loop.pass(std::chrono::seconds(1));
  EXPECT_EQ(delegations(), 0u);
}

TEST_P(Nfs4Callbacks, RECALL_SLOT_leaves_this_client_the_slots_below) {
  v4::nfs_cb_argop4 operation;
  operation.argop = v4::OP_CB_RECALL_SLOT;
  operation.opcbrecall_slot().rsa_target_highest_slotid = 3;
  EXPECT_EQ(ask(std::move(operation)).status, v4::NFS4_OK);
  read_it();
}

TEST_P(Nfs4Callbacks, others_are_answered_as_by_a_client_that_holds_nothing_of_the_kind) {
  EXPECT_EQ(status_of(v4::OP_CB_NOTIFY_LOCK), v4::NFS4_OK);
  EXPECT_EQ(status_of(v4::OP_CB_OFFLOAD), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(status_of(v4::OP_CB_GETATTR), v4::NFS4ERR_BADHANDLE);
  EXPECT_EQ(status_of(v4::OP_CB_RECALL), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(status_of(v4::OP_CB_NOTIFY), v4::NFS4ERR_NOTSUPP);
  EXPECT_EQ(status_of(v4::OP_CB_SEQUENCE), v4::NFS4ERR_SEQUENCE_POS);
  v4::nfs_cb_argop4 recall;
  recall.argop = v4::OP_CB_RECALL;
  EXPECT_EQ(ask(recall, false).status, v4::NFS4ERR_OP_NOT_IN_SESSION);
  session[0] ^= std::byte{1};
  EXPECT_EQ(ask(recall).status, v4::NFS4ERR_BADSESSION);
}

TEST_P(Nfs4Callbacks, sent_again_with_other_operations_are_a_false_retry) {
  v4::nfs_cb_argop4 operation;
  operation.argop = v4::OP_CB_RECALL_ANY;
  operation.opcbrecall_any().craa_objects_to_keep = 1;
  EXPECT_EQ(ask(operation).status, v4::NFS4_OK);
  --sequence;
  EXPECT_EQ(ask(operation).status, v4::NFS4_OK) << "the same";
  --sequence;
  operation.opcbrecall_any().craa_objects_to_keep = 0;
  EXPECT_EQ(ask(operation).status, v4::NFS4ERR_SEQ_FALSE_RETRY);
}

// A connection for callbacks to a server that never answers there.
class Unanswered final : public rpc::Channel {
 public:
  explicit Unanswered(Loop& loop) : Channel(1), loop_(loop) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    co_await pause(loop_, std::chrono::hours(1), message.cancel);
    co_return Failure{rpc::CallError::transport(Reason::Cancelled, where())};
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }

 private:
  Loop& loop_;
};

TEST(Nfs4BackConnection, ends_with_a_client_that_cannot_begin) {
  Nfs4ClientWorld world(1);
  CallbackService service;
  Unanswered back(world.loop);
  world.channel.accident = testing::Accident::Lost;
  world.channel.at = 3;  // RECLAIM_COMPLETE
  const auto connected = world.run(
      nfs4::Nfs4::connect(world.channel, world.options.calls, {&service, nullptr, &back}));
  EXPECT_FALSE(connected.ok());
  EXPECT_TRUE(world.clients().empty()) << "nothing stays at the server";
}

}  // namespace
}  // namespace stag::nfs::client
