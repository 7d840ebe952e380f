// A server's connection that ends in good order: behind its last Reply, and with no Call half
// begun.
#include <gtest/gtest.h>

#include "testing/sim_tcp_client.h"

namespace stag::rpc::tcp {
namespace {

using namespace std::chrono_literals;
using testing::SimClient;

TEST(TcpFinish, sends_the_replies_that_wait_and_then_ends_its_side) {
  SimClient client(100);
  client.call();
  client.settle();
  client.service.let_go();
  client.settle();
  client.finish();
  client.settle();
  EXPECT_FALSE(client.wire.output_ended());
  while (client.wire.take(100) > 0) client.settle();
  EXPECT_EQ(client.wire.taken(), client.service.reply_size());
  EXPECT_TRUE(client.wire.output_ended());
  EXPECT_FALSE(client.wire.closed());
}

TEST(TcpFinish, closes_when_the_client_has_ended_its_side_too) {
  SimClient client(1 << 20);
  client.finish();
  client.settle();
  EXPECT_TRUE(client.open());
  client.wire.end_of_stream();
  client.settle();
  EXPECT_FALSE(client.open());
}

TEST(TcpFinish, waits_no_longer_than_a_second_for_that) {
  SimClient client(100);
  client.call();
  client.settle();
  client.service.let_go();
  client.settle();
  client.finish();
  client.loop.run_for(999ms);
  EXPECT_TRUE(client.open());
  client.loop.run_for(2ms);
  EXPECT_FALSE(client.open());
}

// Unread bytes would have the system reset the connection when it is closed.
TEST(TcpFinish, reads_and_drops_the_calls_that_come_and_begins_none_that_waited) {
  ServerOptions options = SimClient::small();
  options.max_calls = 1;
  SimClient client(1 << 20, options);
  client.call(3);
  client.settle();
  client.finish();
  client.call(2);
  client.settle();
  EXPECT_EQ(client.wire.unread(), 0u);
  client.service.let_go();
  client.settle();
  EXPECT_EQ(client.service.started, 1u);
}

}  // namespace
}  // namespace stag::rpc::tcp
