// A SimLoop of which an allocation fails.
#include <gtest/gtest.h>

#include "fabric/sim/sim_loop.h"
#include "testing/failing_new.h"

namespace stag::fabric {
namespace {

TEST(SimLoopWithoutMemory, has_no_timer_that_it_could_not_give_out) {
  std::size_t n = 1;
  for (bool failed = true; failed; ++n) {
    SimLoop loop;
    testing::allocations_until_failure = n;
    testing::failed_allocations = 0;
    try {
      const Timer timer = loop.after(std::chrono::seconds(1), [] {});
    } catch (const std::bad_alloc&) {
    }
    testing::allocations_until_failure = 0;
    failed = testing::failed_allocations != 0;
    EXPECT_EQ(loop.pending(), 0u) << "after allocation " << n;
  }
  EXPECT_GT(n, 2u) << "the test is about something";
}

}  // namespace
}  // namespace stag::fabric
