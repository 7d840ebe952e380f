// What does not fit a record, or the limits of either side.
#include <gtest/gtest.h>

#include "base/task_group.h"
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
  explicit Limited(Duration backoff_max = 5ms) {
    programs.add(make_program(state));
    auto listening = TcpServer::listen(loop, {"127.0.0.1", 0}, programs, {});
    EXPECT_TRUE(listening.ok());
    server = std::move(*listening);
    ChannelOptions options;
    options.backoff_min = 1ms;
    options.backoff_max = backoff_max;
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
    EXPECT_EQ(w.channel->connections_lost(), 0u);
  });
}

constexpr std::uint32_t kLong = 5 << 20;  // more than a record has as a rule

TEST(TcpLimits, a_reply_may_be_as_long_as_its_call_said) {
  Limited world;
  world.state.slots[1] = pattern(kLong, 1);
  world.run_test([](Limited& w) -> Task<> {
    const GetArgs get{.slot = 1, .count = kLong};
    const auto back = co_await w.client->call<GET>(get);
    EXPECT_TRUE(back.ok() && back->data == pattern(kLong, 1));
    EXPECT_EQ(w.state.executed, 1u);
  });
}

TEST(TcpLimits, a_reply_longer_than_any_call_said_ends_its_call_at_once) {
  Limited world;
  world.state.slots[1] = pattern(kLong, 1);
  world.run_test([](Limited& w) -> Task<> {
    Client unbound(*w.channel);  // knows no bounds
    const GetArgs get{.slot = 1, .count = kLong};
    const auto back = co_await unbound.call<GET>(get);
    EXPECT_EQ(reason_of(back), Reason::RpcRecordTooLong);
    EXPECT_EQ(w.state.executed, 1u);
    const auto small = co_await w.client->call<INCREMENT>(1u);
    EXPECT_TRUE(small.ok());
  });
}

Task<> count_good(Client& client, std::uint32_t& good) {
  const auto result = co_await client.call<INCREMENT>(1u);
  if (result.ok()) ++good;
}

TEST(TcpLimits, a_call_longer_than_the_server_takes_ends_and_takes_no_other_along) {
  Limited world;
  world.run_test([](Limited& w) -> Task<> {
    TaskGroup others;
    std::uint32_t good = 0;
    for (int i = 0; i < 3; ++i) others.add(count_good(*w.client, good));
    const Rope data = mebibytes(kLong >> 20);
    const PutArgs put{.slot = 1, .data = data, .checksum = 0};
    const auto stored = co_await w.client->call<PUT>(put);
    EXPECT_EQ(reason_of(stored), Reason::RpcCallTooLong);
    EXPECT_EQ(w.channel->connections_lost(), 2u);
    const auto again = co_await w.client->call<PUT>(put);
    EXPECT_EQ(reason_of(again), Reason::RpcCallTooLong);
    co_await others.join();
    EXPECT_EQ(good, 3u);
  });
}

// Each of them costs two connections, before which the pauses would double to hours.
TEST(TcpLimits, calls_longer_than_the_server_takes_delay_none_that_it_takes) {
  Limited world(24h);
  world.run_test([](Limited& w) -> Task<> {
    const Rope data = mebibytes(kLong >> 20);
    const PutArgs put{.slot = 1, .data = data, .checksum = 0};
    for (int i = 0; i < 7; ++i) {
      const auto stored = co_await w.client->call<PUT>(put);
      EXPECT_EQ(reason_of(stored), Reason::RpcCallTooLong);
    }
    CallOptions options;
    options.timeout = 3s;
    const auto small = co_await w.client->call<INCREMENT>(1u, options);
    EXPECT_EQ(reason_of(small), Reason::None);
  });
}

}  // namespace
}  // namespace stag::rpc::tcp
