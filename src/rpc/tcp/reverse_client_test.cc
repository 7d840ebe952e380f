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
