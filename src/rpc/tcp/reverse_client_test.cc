// The client's end of a connection on which its server calls, too.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/task_group.h"
#include "net/listener.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/store_service.h"

namespace stag::rpc::tcp {
namespace {

using namespace std::chrono_literals;
namespace store = testing::store;

class TcpReverseClient : public ::testing::Test {
 protected:
  void run(Task<> task) {
    const auto body = [](net::EpollLoop* on, Task<> inner) -> Task<> {
      co_await std::move(inner);
      on->stop();
    };
    loop.post([&] { detach(body(&loop, std::move(task))); });
    loop.run();
  }
  static ChannelOptions options(std::size_t max_reverse_calls = 16) {
    ChannelOptions options;
    options.seed = 7;
    options.max_reverse_calls = max_reverse_calls;
    return options;
  }

  net::EpollLoop loop;
};

// INCREMENT at the other end, and there for as many times as asked.
struct AskTwice : store::INCREMENT {
  static constexpr std::uint32_t program = 0x2000007c;
};
struct PassOn : store::INCREMENT {
  static constexpr std::uint32_t program = 0x2000007d;
};

CallOptions in_time() {
  CallOptions options;
  options.timeout = 10s;
  return options;
}

Task<> pass_on(Channel& client, std::uint32_t value, std::uint32_t& good) {
  Client caller(client, store::kBinding);
  const auto result = co_await caller.call<PassOn>(value, in_time());
  good += result.ok() && *result == value + 1 ? 1 : 0;
}

// At the limit of Calls in progress, which all wait for Replies to calls of the client itself.
TEST_F(TcpReverseClient, gets_Replies_while_it_serves_as_many_Calls_as_it_may) {
  constexpr std::uint32_t kMost = 2;
  Server programs, reverse;
  store::State state;
  programs.add(store::make_program(state));
  programs.add<AskTwice>([](CallContext& call, std::uint32_t count) -> Task<std::uint32_t> {
    const std::shared_ptr<Channel> client = call.reverse_channel();
    std::uint32_t good = 0;
    TaskGroup calls;
    for (std::uint32_t i = 0; i < count; ++i) calls.add(pass_on(*client, i, good));
    co_await calls.join();
    co_return good;
  });
  const auto server = *TcpServer::listen(loop, {"127.0.0.1", 0}, programs);
  TcpChannel channel(loop, server->local(), options(kMost));
  reverse.add<PassOn>([&](CallContext&, std::uint32_t value) -> Task<std::uint32_t> {
    Client caller(channel, store::kBinding);
    const auto result = co_await caller.call<store::INCREMENT>(value, in_time());
    co_return result.ok() ? *result : 0;
  });
  channel.serve_reverse(reverse);
  run([](TcpChannel* of, TcpServer* at) -> Task<> {
    Client caller(*of, store::kBinding);
    for (const std::uint32_t count : {kMost, 2 * kMost - 1}) {
      const auto good = co_await caller.call<AskTwice>(count, in_time());
      EXPECT_TRUE(good.ok() && *good == count) << count;
    }
    co_await of->close();
    co_await at->close();
  }(&channel, server.get()));
}

TEST_F(TcpReverseClient, gets_the_Reply_to_a_call_that_it_makes_where_it_reads_no_more) {
  Server programs, reverse;
  std::shared_ptr<Channel> back;
  programs.add<store::INCREMENT>(
      [&](CallContext& call, std::uint32_t value) -> Task<std::uint32_t> {
        back = call.reverse_channel();
        co_return value + 1;
      });
  const auto server = *TcpServer::listen(loop, {"127.0.0.1", 0}, programs);
  TcpChannel channel(loop, server->local(), options(1));
  Completion<Ok> reached, go_on;
  reverse.add<PassOn>([&](CallContext&, std::uint32_t value) -> Task<std::uint32_t> {
    reached.complete(Ok{});
    co_await go_on;
    Client caller(channel, store::kBinding);
    const auto result = co_await caller.call<store::INCREMENT>(value, in_time());
    co_return result.ok() ? *result : 0;
  });
  channel.serve_reverse(reverse);
  const auto test = [&]() -> Task<> {
    Client caller(channel, store::kBinding);
    static_cast<void>(co_await caller.call<store::INCREMENT>(0, in_time()));
    std::uint32_t good = 0;
    TaskGroup calls;
    calls.add(pass_on(*back, 1, good));
    co_await reached;
    // What the client was woken for by then has no further Call.
    for (int turns = 0; turns < 10; ++turns) co_await resume_on(loop);
    go_on.complete(Ok{});
    co_await calls.join();
    EXPECT_EQ(good, 1u);
    back.reset();
    co_await channel.close();
    co_await server->close();
  };
  run(test());
}

Task<> put(Client& client, const Rope& data) {
  store::PutArgs args;
  args.data = data;
  static_cast<void>(co_await client.call<store::PUT>(args));
}

Rope increment_call(std::uint32_t xid) {
  oncrpc::CallHeader header;
  header.xid = xid;
  header.program = store::kProgram;
  header.version = store::kVersion;
  header.procedure = store::INCREMENT::number;
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  encoder.u32(1);
  const Rope message = std::move(encoder).finish().rope();
  Rope record = Rope::copy_of(oncrpc::record_mark(static_cast<std::uint32_t>(message.size())));
  record.append(message);
  return record;
}

// The records of Calls that come on the socket before that of a Reply.
Task<std::size_t> calls_before_a_reply(net::TcpSocket& socket) {
  oncrpc::RecordReader reader;
  std::vector<std::byte> chunk(64 << 10);
  for (std::size_t calls = 0;;) {
    const auto got = co_await socket.read_some(chunk);
    if (!got.ok()) co_return ~std::size_t{0};
    for (Bytes left = Bytes(chunk).first(*got); !left.empty();) {
      left = left.subspan(*reader.feed(left));
      if (!reader.complete()) continue;
      if (oncrpc::peek(reader.take().bytes())->type == oncrpc::MessageType::REPLY) co_return calls;
      ++calls;
    }
  }
}

constexpr std::size_t kPuts = 32;  // of a MiB: more than the systems of both ends take

// The server that asks for a delegation waits for the Reply for a few seconds only.
TEST_F(TcpReverseClient, sends_Replies_ahead_of_the_Calls_that_have_not_begun_to_leave) {
  Completion<net::AcceptedSocket> accepted;
  auto listener = *net::TcpListener::listen(loop, {"127.0.0.1", 0});
  listener.start([&](net::AcceptedSocket socket) { accepted.complete(std::move(socket)); });
  TcpChannel channel(loop, listener.local(), options());
  Server reverse;
  std::size_t executed = 0;
  reverse.add<store::INCREMENT>([&](CallContext&, std::uint32_t value) -> Task<std::uint32_t> {
    ++executed;
    co_return value + 1;
  });
  channel.serve_reverse(reverse);
  run([](net::EpollLoop* on, TcpChannel* of, Completion<net::AcceptedSocket>* peer,
         std::size_t* done) -> Task<> {
    Client caller(*of, store::kBinding);
    const Rope data = store::pattern(1 << 20, 1);
    TaskGroup calls;
    for (std::size_t i = 0; i < kPuts; ++i) calls.add(put(caller, data));
    net::TcpSocket socket = *net::TcpSocket::adopt(*on, co_await *peer);
    const auto written = co_await socket.write_all(increment_call(1));
    EXPECT_TRUE(written.ok());
    while (*done == 0) co_await resume_on(*on);
    EXPECT_LT(co_await calls_before_a_reply(socket), kPuts);
    co_await of->close();
    co_await calls.join();
  }(&loop, &channel, &accepted, &executed));
}

}  // namespace
}  // namespace stag::rpc::tcp
