// What a client owes its server and other clients with a delegation: the file is closed before it
// is given back (RFC 8881 10.4.4), one that comes unasked goes back (18.16.3), a recall may
// overtake it (2.10.6.3), and callbacks that failed shall come again (RFC 7530 10.2.1, 16.33.5).
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <utility>

#include "oncrpc/message.h"
#include "rpc/service.h"
#include "testing/nfs/delegated_world.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::nfs::client {
namespace {

using testing::Accident;
using testing::DelegatedWorld;
using testing::LoopbackChannel;

// A Channel whose OPENs are changed on their way.
class ChangedCalls final : public rpc::Channel {
 public:
  using Change = std::function<void(v4::OPEN4args&)>;
  ChangedCalls(rpc::Channel& to, Change change) : Channel(1), to_(to), change_(std::move(change)) {}

  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    const Buffer whole = message.stream.rope().flatten();
    xdr::Decoder decoder(whole);
    v4::COMPOUND4args args;
    const bool is_call = oncrpc::decode_call(decoder).ok();
    const std::uint32_t header = decoder.position();
    if (is_call && decode(decoder, args)) {
      for (v4::nfs_argop4& operation : args.argarray)
        if (operation.argop == v4::OP_OPEN) change_(operation.opopen());
      xdr::Encoder encoder;
      encoder.fixed_opaque(whole.bytes().first(header));
      encode(encoder, args);
      message.stream = std::move(encoder).finish();
    }
    co_return co_await to_.call(message);
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return to_.loop(); }
  rpc::TransportKind kind() const override { return to_.kind(); }
  std::string where() const override { return to_.where(); }

 private:
  rpc::Channel& to_;
  Change change_;
};

void deny_everything(v4::OPEN4args& args) {
  args.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
}
void forget_wants(v4::OPEN4args& args) {
  args.share_access &= v4::OPEN4_SHARE_ACCESS_BOTH;
}

class Nfs4GivingBack : public ::testing::TestWithParam<std::uint32_t>, public DelegatedWorld {
 protected:
  Nfs4GivingBack() : DelegatedWorld(GetParam()) { begin(); }
  void TearDown() override {
    run(closed());
    channel.server->nfs4.stop_callbacks();
  }
  // Another client, which lets nobody else open the file.
  Outcome<Opened> other_opens_alone() {
    ChangedCalls alone(channel, deny_everything);
    FileSystemOptions plain = options;
    plain.calls.delegations = false;
    auto other = must(nfs4::Nfs4::connect(alone, plain.calls));
    FileSystem theirs(other, files().root(), "/data", plain);
    must(theirs.walk("file"));
    const Outcome<Opened> open = run(theirs.open(file, kToRead));
    if (open) must(theirs.close(open->file));
    run(ended(other));
    return open;
  }
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4GivingBack, ::testing::Values(0u, 1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4GivingBack, a_file_that_no_program_has_open_keeps_nobody_out) {
  read_it();
  ASSERT_EQ(delegations(), 1u);
  const Outcome<Opened> open = other_opens_alone();
  EXPECT_TRUE(open.ok()) << open.error().sentence;
  EXPECT_EQ(delegations(), 0u);
}

TEST_P(Nfs4GivingBack, a_file_that_a_program_has_open_keeps_others_out_and_stays_open) {
  const Opened open = must(files().open(file, kToRead));
  ASSERT_EQ(delegations(), 1u);
  const Outcome<Opened> denied = other_opens_alone();
  ASSERT_FALSE(denied.ok());
  EXPECT_TRUE(denied.error().is(Status::InUse)) << denied.error().sentence;
  EXPECT_EQ(delegations(), 0u) << "whether one has was asked";
  std::array<std::byte, 8> to;
  EXPECT_EQ(must(files().read(open.file, 0, to)).count, 3u);
  must(files().close(open.file));
  EXPECT_TRUE(other_opens_alone().ok());
}

// What the server asks for comes by the session.
class Nfs4Recalled : public Nfs4GivingBack {
 protected:
  // The accident happens to the call with this number from now on.
  void begin_returns(Accident accident, int at) {
    loop.drain();
    channel.accident = accident;
    channel.at = channel.calls + at;
    v4::CB_COMPOUND4args args;
    args.minorversion = GetParam();
    args.argarray.resize(2);
    args.argarray[0].argop = v4::OP_CB_SEQUENCE;
    // Slot 9 is not one that the server has used.
    args.argarray[0].opcbsequence() = {protocol->session_id(), 1, 9, 9, false, {}};
    args.argarray[1].argop = v4::OP_CB_RECALL_ANY;
    args.argarray[1].opcbrecall_any().craa_objects_to_keep = 0;
    rpc::Client client(*reverse, {}, rpc::Credentials::sys("server", 0, 0));
    const auto answer = loop.run(called(client, args));
    ASSERT_TRUE(answer && answer->ok());
    EXPECT_EQ((*answer)->status, v4::NFS4_OK);
    loop.drain();
  }
  static Task<rpc::CallResult<v4::CB_COMPOUND4res>> called(rpc::Client& client,
                                                           const v4::CB_COMPOUND4args& args) {
    co_return co_await client.call<v4::CB_COMPOUND>(args);
  }
  std::uint32_t opens() { return clients().front().held.opens; }
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4Recalled, ::testing::Values(1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4Recalled, a_file_is_closed_before_it_is_given_back) {
  read_it();
  begin_returns(Accident::Swallowed, 2);
  EXPECT_EQ(opens(), 0u);
  EXPECT_EQ(delegations(), 1u);
  loop.pass(std::chrono::seconds(20));
  EXPECT_EQ(delegations(), 0u);
}

TEST_P(Nfs4Recalled, a_file_whose_CLOSE_did_not_arrive_is_not_given_back_before_it_is_closed) {
  read_it();
  begin_returns(Accident::Swallowed, 1);
  EXPECT_EQ(delegations(), 1u);
  EXPECT_EQ(opens(), 1u);
  loop.pass(std::chrono::seconds(20));
  EXPECT_EQ(opens(), 0u);
  EXPECT_EQ(delegations(), 0u);
}

TEST_P(Nfs4Recalled, a_file_whose_CLOSE_had_no_answer_is_given_back_when_that_was_asked_for_again) {
  read_it();
  begin_returns(Accident::Lost, 1);
  EXPECT_EQ(delegations(), 1u);
  EXPECT_EQ(opens(), 0u);
  const int before = channel.calls;
  loop.pass(std::chrono::seconds(20));
  EXPECT_EQ(opens(), 0u);
  EXPECT_EQ(delegations(), 0u);
  EXPECT_EQ(channel.calls - before, 2) << "CLOSE and DELEGRETURN";
}

Task<void> open_and_close(FileSystem& files, Handle file) {
  const Outcome<Opened> open = co_await files.open(file, DelegatedWorld::kToRead);
  EXPECT_TRUE(open.ok());
  if (open) static_cast<void>(co_await files.close(open->file));
}

// The recall overtakes the answer to the OPEN by ten seconds, in which the server asks again.
TEST_P(Nfs4Recalled, a_file_is_given_back_though_its_recall_came_first) {
  channel.accident = Accident::Slow;
  channel.at = channel.calls + 1;
  channel.answer_after = std::chrono::seconds(10);
  detach(open_and_close(files(), file));
  loop.drain();
  ASSERT_EQ(delegations(), 1u);
  const TimePoint begun = loop.now();
  EXPECT_TRUE(other_writes("written").ok());
  EXPECT_LT(loop.now() - begun, std::chrono::seconds(45)) << "it was revoked after a lease";
  EXPECT_EQ(must(files().getattr(file)).size, 7u);
}

// Of a server that delegates what it likes to.
class Nfs4Unasked : public ::testing::TestWithParam<std::uint32_t>, public DelegatedWorld {
 protected:
  Nfs4Unasked() : DelegatedWorld(GetParam()) {
    begin();
    run(closed());
    connect();
    protocol = must(nfs4::Nfs4::connect(unaware, options.calls, {&service, &listening, nullptr}));
    mine.emplace(protocol, DelegatedWorld::files().root(), "/data", options);
  }
  void TearDown() override {
    run(closed());
    EXPECT_TRUE(clients().empty()) << "nothing is in the way of DESTROY_CLIENTID";
    channel.server->nfs4.stop_callbacks();
  }
  FileSystem& files() { return *mine; }

  ChangedCalls unaware{channel, forget_wants};
  std::optional<FileSystem> mine;
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4Unasked, ::testing::Values(1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4Unasked, delegations_of_new_files_go_back) {
  must(files().create(files().root(), "first", {.mode = 0644}));
  loop.drain();
  EXPECT_EQ(delegations(), 0u);
  const Opened made = must(files().create_open(files().root(), "second", {.mode = 0644},
                                               CreateMode::Unchecked, kToWrite));
  loop.drain();
  EXPECT_EQ(delegations(), 0u);
  must(files().close(made.file));
}

TEST_P(Nfs4Unasked, delegations_of_what_is_opened_for_another_user_go_back) {
  FileSystemOptions theirs = options;
  theirs.calls.credentials = rpc::Credentials::sys("tests", 1000, 1000);
  FileSystem others = files().with(theirs);
  const Opened open = must(others.open(file, kToRead));
  loop.drain();
  EXPECT_EQ(delegations(), 0u);
  must(others.close(open.file));
}

TEST_P(Nfs4Unasked, delegations_of_what_is_opened_again_go_back) {
  const Opened open = must(files().open(file, kToRead));
  channel.server->nfs4.stop_callbacks();
  channel.restart();
  start_callbacks();
  std::array<std::byte, 8> to;
  EXPECT_EQ(must(files().read(open.file, 0, to)).count, 3u);
  loop.drain();
  EXPECT_EQ(clients().front().held.opens, 1u);
  EXPECT_EQ(delegations(), 0u);
  must(files().close(open.file));
}

// A listener that may be out of order.
class Listener final : public rpc::Service {
 public:
  explicit Listener(rpc::Service& to) : to_(to) {}
  Task<std::optional<rpc::OutgoingReply>> serve(rpc::IncomingCall& call) override {
    if (!works) co_return std::nullopt;
    co_return co_await to_.serve(call);
  }
  bool works = true;

 private:
  rpc::Service& to_;
};

class Nfs40Unreached : public ::testing::Test, public DelegatedWorld {
 protected:
  Nfs40Unreached() : DelegatedWorld(0) {
    begin();
    second = must(files().create(files().root(), "second", {.mode = 0644})).handle;
  }
  void TearDown() override {
    run(closed());
    channel.server->nfs4.stop_callbacks();
  }
  std::unique_ptr<rpc::Channel> connection_of_version_4_0() override {
    return std::make_unique<LoopbackChannel>(loop, listener);
  }
  void open_and_close_second() { must(files().close(must(files().open(second, kToRead)).file)); }

  Listener listener{listening.service()};
  Handle second;
};

TEST_F(Nfs40Unreached, is_called_back_again_when_it_has_told_the_server_its_address_anew) {
  const Opened open = must(files().open(file, kToRead));
  ASSERT_EQ(delegations(), 1u);
  listener.works = false;
  EXPECT_TRUE(other_writes("written").ok());
  EXPECT_EQ(delegations(), 0u) << "CB_PATH_DOWN";
  listener.works = true;
  loop.drain();
  open_and_close_second();  // The first OPEN of an owner gets no delegation.
  open_and_close_second();
  EXPECT_EQ(delegations(), 1u);
  std::array<std::byte, 8> to;
  EXPECT_EQ(must(files().read(open.file, 0, to)).count, 7u) << "what is open stays open";
  must(files().close(open.file));
}

}  // namespace
}  // namespace stag::nfs::client
