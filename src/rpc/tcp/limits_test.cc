// What does not fit a record, or the limits of either side.
#include <gtest/gtest.h>

#include "oncrpc/record.h"
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

// A client and the store program.
struct Limited {
  Limited() {
    programs.add(make_program(state));
    auto listening = TcpServer::listen(loop, {"127.0.0.1", 0}, programs, {});
    EXPECT_TRUE(listening.ok());
    server = std::move(*listening);
    ChannelOptions options;
    options.backoff_min = 1ms;
    options.backoff_max = 5ms;
    options.seed = 7;
    channel.emplace(loop, server->local(), options);
    client.emplace(*channel, kBinding);
  }
  void run_test(Task<> (*test)(Limited&)) {
    loop.post([this, test] { detach(whole(this, test)); });
    loop.run();
  }
  static Task<> whole(Limited* world, Task<> (*test)(Limited&)) {
    co_await test(*world);
    co_await world->channel->close();
    co_await world->server->close();
    world->loop.stop();
  }

  EpollLoop loop;
  State state;
  Server programs;
  std::unique_ptr<TcpServer> server;
  std::optional<TcpChannel> channel;
  std::optional<Client> client;
};

// So many MiB, of the memory of one.
Rope mebibytes(std::size_t count) {
  static const std::vector<std::byte> kOne(1 << 20);
  Rope all;
  for (std::size_t i = 0; i < count; ++i) all.append(Rope::borrow(kOne));
  return all;
}

Reason reason_of(const auto& result) {
  return result.ok() ? Reason::None : result.error().reason;
}

TEST(TcpLimits, a_call_that_no_record_mark_can_describe_ends_before_it_is_sent) {
  Limited world;
  world.run_test([](Limited& w) -> Task<> {
    const Rope data = mebibytes(oncrpc::kLastFragment >> 20);
    const PutArgs put{.slot = 1, .data = data, .checksum = 0};
    const auto unconnected = co_await w.client->call<PUT>(put);
    EXPECT_EQ(reason_of(unconnected), Reason::RpcCallTooLong);
    const auto connected = co_await w.client->call<PUT>(put);
    EXPECT_EQ(reason_of(connected), Reason::RpcCallTooLong);
    const auto small = co_await w.client->call<INCREMENT>(1u);
    EXPECT_TRUE(small.ok());
    EXPECT_EQ(w.channel->losses(), 0u);
  });
}

}  // namespace
}  // namespace stag::rpc::tcp
