#include "rpc/tcp/silence_watch.h"

#include <gtest/gtest.h>

#include "fabric/sim/sim_loop.h"
#include "oncrpc/message.h"
#include "testing/sim_wire.h"

namespace stag::rpc::tcp {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kXid = 1000;
constexpr CallTarget kTarget{.program = 0x20000077, .version = 2, .procedure = 7};
constexpr std::size_t kNullCall = 4 + 40;  // mark and header

// The client's end of a connection, its Calls, and a server's system that takes what is sent.
class Watched final : private SilenceWatch::Owner, private RecordStream::Events {
 public:
  explicit Watched(Duration interval = 15s, std::size_t room = 4 << 20)
      : wire(loop, room), watch_(loop, *this, interval) {
    stream_->start(*this);
  }
  ~Watched() {
    if (ended == Reason::None) stream_->close(Reason::Shutdown);
    loop.run_until_idle();
  }
  void call(std::size_t arguments = 4) {
    waits = true;
    xdr::Encoder encoder;
    oncrpc::CallHeader header{.xid = ++xid_, .program = kTarget.program, .version = 2};
    oncrpc::encode(encoder, header);
    encoder.fixed_opaque(std::vector<std::byte>(arguments));
    const xdr::Stream stream = std::move(encoder).finish();
    stream_->send(stream.rope());
    watch_.on_call_sent(*stream_, stream);
  }
  void answer(std::uint32_t xid) {
    oncrpc::ReplyHeader header;
    header.xid = xid;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    const Rope message = std::move(encoder).finish().rope();
    Rope record = Rope::copy_of(oncrpc::record_mark(static_cast<std::uint32_t>(message.size())));
    record.append(message);
    wire.arrive(record);
  }
  // The server's system takes up to `most` bytes a second; the server answers nothing.
  void pass(std::uint32_t seconds, std::size_t most = 4 << 20) {
    for (; seconds > 0 && ended == Reason::None; --seconds) {
      loop.run_for(1s);
      wire.take(most);
    }
    loop.run_for(0s);
  }
  std::uint32_t last_call() const { return xid_; }

  fabric::SimLoop loop;
  testing::SimWire wire;
  bool waits = false;         // a Call does
  std::uint32_t probes = 0;   // there have been
  std::uint32_t answers = 0;  // to them
  Reason ended = Reason::None;

 private:
  bool awaits_reply() const override { return waits; }
  std::uint32_t xid_of_probe() override { return kXid + ++probes; }
  void on_record(Buffer record) override {
    if (watch_.on_reply(oncrpc::peek(record.bytes())->xid))
      ++answers;
    else
      waits = false;
  }
  void on_stream_closed(Reason reason) override {
    watch_.on_stream_closed();
    ended = reason;
  }

  std::shared_ptr<RecordStream> stream_ = std::make_shared<RecordStream>(
      wire.end(), ChannelOptions().stream, std::make_shared<Account>(nullptr, "", loop, 0));
  SilenceWatch watch_;
  std::uint32_t xid_ = 0;
};

TEST(TcpSilence, ends_a_connection_whose_server_does_not_answer_a_NULL_call) {
  Watched client;
  client.call();
  client.pass(14);
  const std::size_t call = client.wire.taken();
  client.pass(2);
  EXPECT_EQ(client.wire.taken(), call + kNullCall);
  client.pass(58);
  EXPECT_EQ(client.ended, Reason::None);
  client.pass(2);
  EXPECT_EQ(client.ended, Reason::RpcServerSilent);
  EXPECT_EQ(client.probes, 1u);
}

TEST(TcpSilence, is_none_where_NULL_calls_are_answered_however_long_a_Call_takes) {
  Watched client;
  client.call();
  for (int minutes = 0; minutes < 20; ++minutes) {
    client.pass(59);
    while (client.answers < client.probes) {
      client.answer(kXid + client.answers + 1);
      client.loop.run_for(0s);
    }
    EXPECT_EQ(client.ended, Reason::None);
  }
  EXPECT_GE(client.probes, 20u);
  client.answer(client.last_call());
  client.pass(100);
  EXPECT_FALSE(client.waits);
  EXPECT_EQ(client.ended, Reason::None);
}

// Its Calls leave and are acknowledged, one after the other, and each is given up at once.
TEST(TcpSilence, is_found_whatever_time_its_Calls_have) {
  Watched client;
  for (int seconds = 0; seconds < 95 && client.ended == Reason::None; ++seconds) {
    client.call();
    client.waits = false;
    client.pass(1);
  }
  EXPECT_EQ(client.ended, Reason::RpcServerSilent);
}

TEST(TcpSilence, is_found_after_the_last_Call_was_given_up) {
  Watched client;
  client.call();
  client.waits = false;
  client.pass(77);
  EXPECT_EQ(client.ended, Reason::RpcServerSilent);
}

TEST(TcpSilence, is_none_while_what_was_sent_before_the_NULL_call_is_on_its_way) {
  Watched client(15s, 64 << 10);
  client.call(1 << 20);
  client.pass(15 * 60, 1000);
  EXPECT_EQ(client.ended, Reason::None);
  EXPECT_EQ(client.probes, 1u);
  client.pass(95, 0);
  EXPECT_EQ(client.ended, Reason::RpcServerSilent) << "nothing is taken";
}

TEST(TcpSilence, is_found_behind_what_was_sent_before_the_NULL_call) {
  Watched client(15s, 64 << 10);
  client.call(1 << 20);
  client.pass(11 * 60, 2000);
  EXPECT_EQ(client.ended, Reason::RpcServerSilent);
  EXPECT_GT(client.wire.taken(), 1u << 20);
}

TEST(TcpSilence, is_not_looked_for_where_no_Call_waits) {
  Watched client;
  client.call();
  client.pass(1);
  client.answer(client.last_call());
  client.pass(1000);
  EXPECT_EQ(client.probes, 0u);
  EXPECT_EQ(client.ended, Reason::None);
  client.call();
  client.pass(77);
  EXPECT_EQ(client.ended, Reason::RpcServerSilent) << "of a later Call";
}

TEST(TcpSilence, is_not_looked_for_where_nobody_wants_that) {
  Watched client(Duration::zero());
  client.call();
  client.pass(1000);
  EXPECT_EQ(client.probes, 0u);
  EXPECT_EQ(client.ended, Reason::None);
}

}  // namespace
}  // namespace stag::rpc::tcp
