// A call in steady state takes nothing from the heap: frames and Blocks come back from their free
// lists. The whole program's operator new counts.
#include <gtest/gtest.h>

#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/counted_new.h"
#include "testing/direct_channel.h"
#include "testing/manual_loop.h"
#include "testing/store_service.h"

namespace stag::rpc {
namespace {

using namespace testing::store;

Task<> ping_often(Client& client, std::uint32_t times, std::uint32_t& good) {
  for (std::uint32_t i = 0; i < times; ++i) {
    auto pong = co_await client.ping(kProgram, kVersion);
    auto one = co_await client.call<INCREMENT>(i);
    if (pong.ok() && one.ok() && *one == i + 1) ++good;
  }
}

TEST(RpcCallAllocation, allocates_nothing_in_steady_state) {
  testing::ManualLoop loop;
  State state;
  Server server;
  server.add(make_program(state));
  testing::DirectChannel channel(loop, server);
  Client client(channel, kBinding, Credentials::sys("host", 1, 2));
  std::uint32_t good = 0;
  detach(ping_often(client, 10, good));
  const std::size_t before = testing::heap_allocations;
  detach(ping_often(client, 1000, good));
  EXPECT_EQ(testing::heap_allocations, before);
  EXPECT_EQ(good, 1010u);
}

}  // namespace
}  // namespace stag::rpc
