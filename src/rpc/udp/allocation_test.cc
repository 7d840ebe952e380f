// Memory runs out while a Call by UDP is made: it fails, and the Channel goes on. The whole
// program's operator new fails when told to.
#include <gtest/gtest.h>

#include <thread>

#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/udp/channel.h"
#include "rpc/udp/server.h"
#include "testing/failing_new.h"
#include "testing/store_service.h"

namespace stag::rpc::udp {
namespace {

using namespace testing::store;

struct PoorWorld {
  PoorWorld() {
    programs.add(make_program(state));
    server = UdpServer::serve(loop, *net::UdpSocket::open(loop, {"127.0.0.1", 0}), programs);
    channel = std::make_unique<UdpChannel>(loop, server->local(), ChannelOptions());
    client.emplace(*channel, kBinding);
  }

  net::EpollLoop loop;
  State state;
  Server programs;
  std::unique_ptr<UdpServer> server;
  std::unique_ptr<UdpChannel> channel;
  std::optional<Client> client;
};

Task<> increment(PoorWorld& world, bool& good, Completion<Ok>& ended) {
  try {
    const auto one = co_await world.client->call<INCREMENT>(41u);
    good = one.ok() && *one == 42u;
  } catch (const std::bad_alloc&) {
    good = false;
  }
  ended.complete(Ok{});
}

// Makes a first Call of which the `n`th allocation fails, if there are so many, and then a whole
// one.
Task<> fail(PoorWorld& world, std::size_t n, bool& failed) {
  EXPECT_TRUE((co_await world.channel->open({})).ok());
  for (const bool whole : {false, true}) {
    bool good = false;
    Completion<Ok> ended;
    Task<> call = increment(world, good, ended);
    testing::allocations_until_failure = whole ? 0 : n;
    detach(std::move(call));
    if (!whole) failed = testing::allocations_until_failure == 0;
    testing::allocations_until_failure = 0;
    co_await ended;
    EXPECT_EQ(good, whole || !failed) << n;
  }
  co_await world.channel->close();
  co_await world.server->close();
  world.loop.stop();
}

TEST(UdpAllocation, that_fails_costs_the_Call) {
  bool failed = true;
  std::size_t n = 0;
  while (failed && ++n < 100) {
    std::thread([&] {
      PoorWorld world;
      world.loop.post([&] { detach(fail(world, n, failed)); });
      world.loop.run();
    }).join();
  }
  EXPECT_FALSE(failed);
  EXPECT_GT(n, 4u);
}

}  // namespace
}  // namespace stag::rpc::udp
