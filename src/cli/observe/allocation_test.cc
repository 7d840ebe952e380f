// What is counted while memory runs out.
#include <gtest/gtest.h>

#include <chrono>

#include "cli/observe/statistics.h"
#include "testing/failing_new.h"
#include "testing/manual_loop.h"

namespace stag::cli {
namespace {

TEST(Statistics,
     have_no_more_connections_closed_than_opened_behind_one_that_there_was_no_memory_for) {
  testing::ManualLoop loop;
  Statistics statistics([] { return TimePoint(); });
  rpc::Origin origin;
  origin.peer = {"192.0.2.7", 700};
  origin.transport = rpc::TransportKind::Tcp;
  origin.loop = &loop;
  const auto tcp = static_cast<std::size_t>(origin.transport);
  const auto connected = [&] {
    const StatisticsSums sums = statistics.sums();
    return sums.connected[tcp] - sums.disconnected[tcp];
  };
  testing::allocations_until_failure = 1;
  statistics.on_connected(origin);
  EXPECT_EQ(testing::allocations_until_failure, 0u);
  EXPECT_EQ(connected(), 1u);
  testing::allocations_until_failure = 1;
  statistics.on_disconnected(origin);
  EXPECT_EQ(connected(), 0u);
  testing::allocations_until_failure = 1;
  statistics.on_connected(origin);
  testing::allocations_until_failure = 0;
  statistics.on_disconnected(origin);
  EXPECT_EQ(connected(), 0u);
}

}  // namespace
}  // namespace stag::cli
