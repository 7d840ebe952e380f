// Calls of one client over one stream after the other, whose bytes, time and end are the test's.
#include "rpc/tcp/requester.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/task_group.h"
#include "fabric/sim/sim_loop.h"
#include "oncrpc/message.h"
#include "testing/sim_wire.h"

namespace stag::rpc::tcp {
namespace {

constexpr std::size_t kRecord = 4 + 40;  // the mark, and a header without arguments

// Signs so many transmissions; every later one fails.
class Signer final : public CallSigner {
 public:
  explicit Signer(std::size_t good) : good_(good) {}
  Result<Ok, Reason> sign(CallMessage&) override {
    if (good_ == 0) return Failure{Reason::RpcProtectionFailed};
    --good_;
    return Ok{};
  }

 private:
  std::size_t good_;
};

class TcpRequester : public ::testing::Test,
                     private Requester::Owner,
                     private RecordStream::Events {
 protected:
  ~TcpRequester() override {
    on_failed = nullptr;  // it may use what the test has ended
    requester.shut(Reason::Shutdown);
    lose();
    loop.run_until_idle();
  }
  void connect() {
    wire.emplace(loop, 1 << 20);
    stream = std::make_shared<RecordStream>(wire->end(), ChannelOptions().stream,
                                            std::make_shared<Account>(nullptr, "", loop, 0));
    stream->start(*this);
    requester.attach(stream);
  }
  void lose() {
    if (stream == nullptr) return;
    stream->close(Reason::ConnectionReset);
    requester.detach(Reason::ConnectionReset);
    stream = nullptr;
  }
  void settle() { loop.run_for(Duration::zero()); }
  void call(std::uint32_t xid, CallSigner* signer = nullptr, CancelToken cancel = {}) {
    oncrpc::CallHeader header;
    header.xid = xid;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    CallMessage& message = messages.emplace_back();
    message.xid = xid;
    message.stream = std::move(encoder).finish();
    message.signer = signer;
    message.cancel = cancel;
    tasks.add(run(*this, message));
  }
  static Task<> run(TcpRequester& test, CallMessage& message) {
    const auto result = co_await test.requester.call(message);
    if (!result) test.failed.push_back({message.xid, result.error().reason});
    if (test.on_failed && !result) test.on_failed();
  }

  fabric::SimLoop loop;
  std::optional<testing::SimWire> wire;  // of the connection there is
  std::shared_ptr<RecordStream> stream;
  Requester requester{loop, *this, "tcp server"};
  std::deque<CallMessage> messages;
  std::vector<std::pair<std::uint32_t, Reason>> failed;  // XIDs
  std::function<void()> on_failed;
  TaskGroup tasks;

 private:
  void on_stream_wanted() override {}
  void on_call_sent(const xdr::Stream&) noexcept override {}
  void on_record(Buffer) override {}
  void on_stream_closed(Reason) override {}
};

// Calls are sent again in the order of their XIDs modulo 256, so that the second one is the first
// on the new connection, as the other one was on that which is lost.
TEST_F(TcpRequester, sends_every_call_again_though_one_of_them_cannot_be_signed_anew) {
  Signer once(1);
  connect();
  call(255, &once);
  call(256);
  settle();
  EXPECT_EQ(wire->take(1 << 20), 2 * kRecord);
  lose();
  connect();
  settle();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0], std::pair(255u, Reason::RpcProtectionFailed));
  EXPECT_EQ(wire->take(1 << 20), kRecord) << "of the other call";
}

TEST_F(TcpRequester, sends_every_call_again_though_another_is_given_up_before_its_turn) {
  Signer once(1);
  CancelSource cancel;
  on_failed = [&] { cancel.cancel(); };
  connect();
  call(255, nullptr, cancel);  // has the last turn, and had the first
  call(256);
  call(257, &once);
  settle();
  lose();
  connect();
  settle();
  EXPECT_EQ(failed.size(), 2u);
  EXPECT_EQ(wire->take(1 << 20), kRecord) << "of 256";
}

}  // namespace
}  // namespace stag::rpc::tcp
