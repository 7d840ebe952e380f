// One side of the connection is a raw socket that does what it likes.
#include <gtest/gtest.h>

#include "base/task_group.h"
#include "oncrpc/message.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/store_service.h"

namespace stag::rpc::tcp {
namespace {

using namespace testing::store;
using namespace std::chrono_literals;
using net::EpollLoop;

void finish(EpollLoop& loop, Task<> task) {
  const auto body = [](EpollLoop* on, Task<> inner) -> Task<> {
    co_await std::move(inner);
    on->stop();
  };
  loop.post([&] { detach(body(&loop, std::move(task))); });
  loop.run();
}

ChannelOptions impatient() {
  ChannelOptions options;
  options.backoff_min = 1ms;
  options.backoff_max = 5ms;
  options.seed = 7;
  return options;
}

// A raw server: accepts one connection at a time.
class RawServer {
 public:
  explicit RawServer(EpollLoop& loop)
      : loop_(loop), listener_(*net::TcpListener::listen(loop, {"127.0.0.1", 0})) {
    listener_.start([this](net::AcceptedSocket accepted) {
      ++accepted_;
      if (waiting_ != nullptr)
        std::exchange(waiting_, nullptr)->complete(std::move(accepted));
      else
        ready_.push_back(std::move(accepted));
    });
  }
  Address address() const { return listener_.local(); }
  std::size_t accepted() const { return accepted_; }
  Task<net::TcpSocket> accept() {
    if (ready_.empty()) {
      Completion<net::AcceptedSocket> wait;
      waiting_ = &wait;
      net::AcceptedSocket accepted = co_await wait;
      co_return std::move(*net::TcpSocket::adopt(loop_, std::move(accepted)));
    }
    net::AcceptedSocket accepted = std::move(ready_.front());
    ready_.erase(ready_.begin());
    co_return std::move(*net::TcpSocket::adopt(loop_, std::move(accepted)));
  }

 private:
  EpollLoop& loop_;
  net::TcpListener listener_;
  std::vector<net::AcceptedSocket> ready_;
  std::size_t accepted_ = 0;
  Completion<net::AcceptedSocket>* waiting_ = nullptr;
};

// The next record on the socket; empty when the connection ended.
Task<Buffer> read_record(net::TcpSocket& socket) {
  oncrpc::RecordReader reader;
  std::array<std::byte, 4096> chunk;
  while (!reader.complete()) {
    auto got = co_await socket.read_some(chunk);
    if (!got.ok()) co_return Buffer();
    EXPECT_TRUE(reader.feed(Bytes(chunk).first(*got)).ok());
  }
  co_return reader.take();
}

Rope framed(Rope message) {
  const auto mark = oncrpc::record_mark(static_cast<std::uint32_t>(message.size()));
  Rope record(Buffer::copy_of(mark));
  record.append(message);
  return record;
}

Rope success_reply(std::uint32_t xid, std::uint32_t value) {
  xdr::Encoder encoder;
  oncrpc::ReplyHeader header;
  header.xid = xid;
  oncrpc::encode(encoder, header);
  encoder.u32(value);
  return framed(std::move(encoder).finish().rope());
}

template <class... Words>
Rope words(Words... values) {
  xdr::Encoder encoder;
  (encoder.u32(static_cast<std::uint32_t>(values)), ...);
  return std::move(encoder).finish().rope();
}

Task<> increment_into(Client& client, std::optional<CallResult<std::uint32_t>>& result) {
  result = co_await client.call<INCREMENT>(1u);
}

TEST(TcpChannel, sends_waiting_calls_again_on_a_new_connection_with_the_same_XID) {
  EpollLoop loop;
  RawServer raw(loop);
  finish(loop, [](EpollLoop* on, RawServer* server) -> Task<> {
    TcpChannel channel(*on, server->address(), impatient());
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    Buffer first;
    {
      net::TcpSocket socket = co_await server->accept();
      first = co_await read_record(socket);
    }
    net::TcpSocket socket = co_await server->accept();
    Buffer second = co_await read_record(socket);
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(Rope(first), Rope(second));
    EXPECT_EQ(channel.connections_lost(), 1u);
    Rope reply = success_reply(load_be<std::uint32_t>(second.data()), 5);
    auto written = co_await socket.write_all(reply);
    EXPECT_TRUE(written.ok());
    co_await calls.join();
    EXPECT_TRUE(result->ok() && **result == 5u);
    co_await channel.close();
  }(&loop, &raw));
}

TEST(TcpChannel, pauses_before_it_connects_again_where_no_Reply_has_ended_a_call) {
  EpollLoop loop;
  RawServer raw(loop);
  finish(loop, [](EpollLoop* on, RawServer* server) -> Task<> {
    ChannelOptions options;
    options.backoff_min = options.backoff_max = 1h;
    TcpChannel channel(*on, server->address(), options);
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    net::TcpSocket socket = co_await server->accept();
    const Buffer call = co_await read_record(socket);
    EXPECT_TRUE(
        (co_await socket.write_all(framed(words(load_be<std::uint32_t>(call.data()), 5)))).ok());
    EXPECT_TRUE((co_await read_record(socket)).empty())
        << "of no known type: the client has closed";
    for (int turns = 0; channel.connections_lost() == 0 || turns < 100; ++turns)
      co_await resume_on(*on);
    EXPECT_EQ(server->accepted(), 1u) << "the next one comes in half an hour, or later";
    co_await channel.close();
    co_await calls.join();
    EXPECT_FALSE(result->ok());
  }(&loop, &raw));
}

TEST(TcpChannel, takes_another_connection_where_not_even_a_NULL_call_is_answered) {
  EpollLoop loop;
  RawServer raw(loop);
  finish(loop, [](EpollLoop* on, RawServer* server) -> Task<> {
    ChannelOptions options = impatient();
    options.probe_after = 5ms;
    TcpChannel channel(*on, server->address(), options);
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    net::TcpSocket silent = co_await server->accept();
    const Buffer first = co_await read_record(silent);
    const Buffer probe = co_await read_record(silent);
    EXPECT_EQ(Rope(probe), words(load_be<std::uint32_t>(first.data()) + 1, 0, 2, kProgram, kVersion,
                                 0, 0, 0, 0, 0));
    net::TcpSocket socket = co_await server->accept();
    const Buffer second = co_await read_record(socket);
    EXPECT_EQ(Rope(first), Rope(second));
    const Rope reply = success_reply(load_be<std::uint32_t>(second.data()), 5);
    EXPECT_TRUE((co_await socket.write_all(reply)).ok());
    co_await calls.join();
    EXPECT_TRUE(result->ok() && **result == 5u);
    co_await channel.close();
  }(&loop, &raw));
}

TEST(TcpChannel, keeps_the_connection_where_NULL_calls_are_answered) {
  EpollLoop loop;
  RawServer raw(loop);
  finish(loop, [](EpollLoop* on, RawServer* server) -> Task<> {
    const std::uint64_t unmatched = reason_counters().of(Reason::RpcReplyUnmatched);
    ChannelOptions options = impatient();
    options.probe_after = 20ms;
    TcpChannel channel(*on, server->address(), options);
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    net::TcpSocket socket = co_await server->accept();
    const Buffer call = co_await read_record(socket);
    for (int probes = 0; probes < 5; ++probes) {
      const Buffer probe = co_await read_record(socket);
      EXPECT_TRUE(
          (co_await socket.write_all(success_reply(load_be<std::uint32_t>(probe.data()), 0))).ok());
    }
    EXPECT_TRUE(
        (co_await socket.write_all(success_reply(load_be<std::uint32_t>(call.data()), 5))).ok());
    co_await calls.join();
    EXPECT_TRUE(result->ok() && **result == 5u);
    EXPECT_EQ(channel.connections_lost(), 0u);
    EXPECT_EQ(reason_counters().of(Reason::RpcReplyUnmatched), unmatched);
    co_await channel.close();
  }(&loop, &raw));
}

TEST(TcpChannel, ignores_replies_that_match_no_call) {
  EpollLoop loop;
  RawServer raw(loop);
  finish(loop, [](EpollLoop* on, RawServer* server) -> Task<> {
    const std::uint64_t before = reason_counters().of(Reason::RpcReplyUnmatched);
    TcpChannel channel(*on, server->address(), impatient());
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    net::TcpSocket socket = co_await server->accept();
    Buffer call = co_await read_record(socket);
    const std::uint32_t xid = load_be<std::uint32_t>(call.data());
    Rope replies = success_reply(xid + 1, 4);
    replies.append(success_reply(xid, 5));
    replies.append(success_reply(xid, 6));
    auto written = co_await socket.write_all(replies);
    EXPECT_TRUE(written.ok());
    co_await calls.join();
    EXPECT_TRUE(result->ok() && **result == 5u);
    calls.add(increment_into(client, result));
    call = co_await read_record(socket);
    Rope last = success_reply(load_be<std::uint32_t>(call.data()), 7);
    written = co_await socket.write_all(last);
    co_await calls.join();
    EXPECT_TRUE(result->ok() && **result == 7u) << "the same connection goes on";
    EXPECT_EQ(reason_counters().of(Reason::RpcReplyUnmatched), before + 2);
    co_await channel.close();
  }(&loop, &raw));
}

TEST(TcpChannel, reports_replies_it_cannot_decode) {
  EpollLoop loop;
  RawServer raw(loop);
  finish(loop, [](EpollLoop* on, RawServer* server) -> Task<> {
    TcpChannel channel(*on, server->address(), impatient());
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    net::TcpSocket socket = co_await server->accept();
    Buffer call = co_await read_record(socket);
    Rope reply = framed(words(load_be<std::uint32_t>(call.data()), 1, 0, 0));
    auto written = co_await socket.write_all(reply);
    EXPECT_TRUE(written.ok());
    co_await calls.join();
    EXPECT_EQ(result->error().kind, CallError::Kind::Malformed);
    co_await channel.close();
  }(&loop, &raw));
}

Task<> put_borrowed(Client& client, Bytes memory, CancelToken cancel, Reason& outcome) {
  CallOptions options;
  options.cancel = cancel;
  const PutArgs args{.slot = 1, .data = Rope::borrow(memory), .checksum = 0};
  auto result = co_await client.call<PUT>(args, options);
  outcome = result.ok() ? Reason::None : result.error().reason;
}

TEST(TcpChannel, needs_the_memory_of_a_cancelled_call_no_more_once_the_call_has_returned) {
  EpollLoop loop;
  RawServer raw(loop);
  finish(loop, [](EpollLoop* on, RawServer* server) -> Task<> {
    TcpChannel channel(*on, server->address(), impatient());
    Client client(channel, kBinding);
    const Rope original = pattern(8 << 20, 3);
    std::vector<std::byte> memory(original.size());
    original.copy_to(memory);
    CancelSource source;
    TaskGroup calls;
    Reason outcome = Reason::None;
    calls.add(put_borrowed(client, memory, source, outcome));
    net::TcpSocket socket = co_await server->accept();
    std::array<std::byte, 1000> front;
    auto got = co_await socket.read_some(front);  // the record has begun to leave
    EXPECT_TRUE(got.ok());
    source.cancel();
    co_await calls.join();
    EXPECT_EQ(outcome, Reason::Cancelled);
    std::fill(memory.begin(), memory.end(), std::byte{0xEE});
    oncrpc::RecordReader reader({.record = 16 << 20, .fragments = 10});
    auto fed = reader.feed(Bytes(front).first(*got));
    std::vector<std::byte> chunk(65536);
    while (fed.ok() && !reader.complete()) {
      auto more = co_await socket.read_some(chunk);
      if (!more.ok()) break;
      fed = reader.feed(Bytes(chunk).first(*more));
    }
    EXPECT_TRUE(reader.complete());
    const Buffer record = reader.take();
    EXPECT_EQ(Rope(record.slice(48, original.size())), original);
    co_await channel.close();
  }(&loop, &raw));
}

// A server of ours and the bytes of a stranger.
struct Victim {
  explicit Victim(const ServerOptions& options = {}) {
    programs.add(make_program(state));
    server = std::move(*TcpServer::listen(loop, {"127.0.0.1", 0}, programs, {}, options));
  }
  void run_test(Task<> (*test)(Victim&)) { finish(loop, whole(this, test)); }
  static Task<> whole(Victim* victim, Task<> (*test)(Victim&)) {
    co_await test(*victim);
    co_await victim->server->close();
  }
  EpollLoop loop;
  State state;
  Server programs;
  std::unique_ptr<TcpServer> server;
};

// Sends `bytes` and expects the server to close the connection because of `reason`.
Task<> expect_closed(Victim& victim, Rope bytes, Reason reason) {
  const std::uint64_t before = reason_counters().of(reason);
  auto socket = co_await net::connect(victim.loop, victim.server->local());
  EXPECT_TRUE(socket.ok());
  static_cast<void>(co_await socket->write_all(bytes));
  std::array<std::byte, 64> answer;
  auto got = co_await socket->read_some(answer);
  EXPECT_FALSE(got.ok());
  while (victim.server->connections() > 0) co_await resume_on(victim.loop);
  EXPECT_EQ(reason_counters().of(reason), before + 1) << to_string(reason);
}

TEST(TcpServer, closes_a_connection_that_breaks_the_rules_and_serves_the_others) {
  ServerOptions options;
  options.stream.records = {.record = 1 << 20, .fragments = 100};
  Victim victim(options);
  victim.run_test([](Victim& v) -> Task<> {
    co_await expect_closed(v, words(0x80100001), Reason::RpcRecordTooLong);
    Rope empty_fragments;
    for (int i = 0; i < 101; ++i) empty_fragments.append(words(0));
    co_await expect_closed(v, empty_fragments, Reason::RpcRecordFragmented);
    co_await expect_closed(v, framed(words(1)), Reason::RpcMessageTruncated);
    co_await expect_closed(v, framed(words(1, 2, 3)), Reason::RpcMessageTypeUnknown);
    TcpChannel channel(v.loop, v.server->local(), impatient());
    Client client(channel, kBinding);
    auto result = co_await client.call<INCREMENT>(1u);
    EXPECT_TRUE(result.ok());
    co_await channel.close();
  });
}

TEST(TcpServer, gives_up_a_client_that_does_not_take_its_replies) {
  ServerOptions options;
  options.stream.queued = 1 << 20;
  options.stream.stall = 30ms;
  Victim victim(options);
  victim.state.slots[1] = pattern(1 << 20, 1);
  victim.run_test([](Victim& v) -> Task<> {
    const std::uint64_t before = reason_counters().of(Reason::RpcPeerTooSlow);
    auto socket = co_await net::connect(v.loop, v.server->local());
    EXPECT_TRUE(socket.ok());
    oncrpc::CallHeader header;
    header.program = kProgram;
    header.version = kVersion;
    header.procedure = GET::number;
    Rope calls;
    for (header.xid = 1; header.xid <= 64; ++header.xid) {
      xdr::Encoder encoder;
      oncrpc::encode(encoder, header);
      const GetArgs args{.slot = 1, .count = 1 << 20};
      GET::encode_args(encoder, args);
      calls.append(framed(std::move(encoder).finish().rope()));
    }
    auto written = co_await socket->write_all(calls);
    EXPECT_TRUE(written.ok());
    while (reason_counters().of(Reason::RpcPeerTooSlow) == before) co_await resume_on(v.loop);
    while (v.server->connections() > 0) co_await resume_on(v.loop);
  });
}

// Holds every Call until it is let go, then answers with `reply_bytes`.
class Waiting final : public Service {
 public:
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    most = std::max(most, ++running);
    ++started;
    Completion<Ok> wait;
    if (hold) {
      waiting.push_back(&wait);
      co_await wait;
    }
    --running;
    xdr::Encoder encoder;
    oncrpc::ReplyHeader header;
    header.xid = load_be<std::uint32_t>(call.payload.data());
    oncrpc::encode(encoder, header);
    OutgoingReply reply;
    encoder.fixed_opaque(body.bytes());
    reply.stream = std::move(encoder).finish();
    co_return reply;
  }
  void let_go() {
    for (Completion<Ok>* next : std::exchange(waiting, {})) next->complete(Ok{});
  }

  bool hold = true;
  Buffer body;
  std::size_t running = 0;
  std::size_t most = 0;
  std::size_t started = 0;
  std::vector<Completion<Ok>*> waiting;
};

Rope many_calls(std::uint32_t count) {
  Rope calls;
  oncrpc::CallHeader header;
  for (header.xid = 1; header.xid <= count; ++header.xid) {
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    calls.append(framed(std::move(encoder).finish().rope()));
  }
  return Rope(calls.flatten());
}

TEST(TcpServer, starts_no_more_calls_than_allowed_whatever_comes_at_once) {
  EpollLoop loop;
  Waiting service;
  ServerOptions options;
  options.max_calls = 8;
  auto server = std::move(*TcpServer::listen(loop, {"127.0.0.1", 0}, service, {}, options));
  finish(loop, [](EpollLoop* on, TcpServer* victim, Waiting* calls) -> Task<> {
    auto socket = co_await net::connect(*on, victim->local());
    EXPECT_TRUE(socket.ok());
    auto written = co_await socket->write_all(many_calls(600));
    EXPECT_TRUE(written.ok());
    while (calls->started < 600) {
      calls->let_go();
      co_await resume_on(*on);
    }
    calls->let_go();
    EXPECT_EQ(calls->most, 8u);
    co_await victim->close();
  }(&loop, server.get(), &service));
}

TEST(TcpServer, drops_calls_that_wait_for_their_turn_when_the_connection_ends) {
  EpollLoop loop;
  Waiting service;
  ServerOptions options;
  options.max_calls = 8;
  auto server = std::move(*TcpServer::listen(loop, {"127.0.0.1", 0}, service, {}, options));
  finish(loop, [](EpollLoop* on, TcpServer* victim, Waiting* calls) -> Task<> {
    {
      auto socket = co_await net::connect(*on, victim->local());
      auto written = co_await socket->write_all(many_calls(600));
      EXPECT_TRUE(written.ok());
      while (calls->started < 8) co_await resume_on(*on);
    }
    TaskGroup closing;
    closing.add(victim->close());
    while (victim->connections() > 0) co_await resume_on(*on);
    calls->let_go();
    co_await closing.join();
    EXPECT_EQ(calls->started, 8u);
  }(&loop, server.get(), &service));
}

TEST(TcpServer, starts_no_call_while_the_client_does_not_take_its_replies_and_all_once_it_does) {
  EpollLoop loop;
  Waiting service;
  service.hold = false;
  service.body = pattern(256 << 10, 1).flatten();
  ServerOptions options;
  options.stream.queued = 1 << 20;
  auto server = std::move(*TcpServer::listen(loop, {"127.0.0.1", 0}, service, {}, options));
  finish(loop, [](EpollLoop* on, TcpServer* victim, Waiting* calls) -> Task<> {
    auto socket = co_await net::connect(*on, victim->local());
    auto written = co_await socket->write_all(many_calls(200));
    EXPECT_TRUE(written.ok());
    while (calls->started == 0) co_await resume_on(*on);
    EXPECT_LT(calls->started, 100u) << "50 MiB of replies, for a peer that reads none";
    std::size_t left = 200 * (4 + 24 + calls->body.size());
    std::vector<std::byte> chunk(1 << 20);
    while (left > 0) {
      auto got = co_await socket->read_some(chunk);
      EXPECT_TRUE(got.ok());
      if (!got.ok()) break;
      left -= *got;
    }
    EXPECT_EQ(calls->started, 200u);
    co_await victim->close();
  }(&loop, server.get(), &service));
}

TEST(TcpServer, gives_up_a_client_that_never_ends_its_record) {
  ServerOptions options;
  options.stream.stall = 20ms;
  Victim victim(options);
  victim.run_test([](Victim& v) -> Task<> {
    co_await expect_closed(v, words(0x80000100, 1, 0), Reason::RpcPeerTooSlow);
  });
}

TEST(TcpServer, gives_up_a_client_whose_record_trickles) {
  ServerOptions options;
  options.stream.whole_record = 20ms;
  Victim victim(options);
  victim.run_test([](Victim& v) -> Task<> {
    const std::uint64_t before = reason_counters().of(Reason::RpcPeerTooSlow);
    auto socket = co_await net::connect(v.loop, v.server->local());
    EXPECT_TRUE(socket.ok());
    auto written = co_await socket->write_all(words(0x80010000));
    while (v.server->connections() == 0) co_await resume_on(v.loop);
    for (std::size_t sent = 0; sent < 1 << 16 && v.server->connections() > 0; ++sent) {
      if (written.ok()) written = co_await socket->write_all(words(0).slice(0, 1));
      co_await resume_on(v.loop);
    }
    EXPECT_EQ(reason_counters().of(Reason::RpcPeerTooSlow), before + 1);
  });
}

}  // namespace
}  // namespace stag::rpc::tcp
