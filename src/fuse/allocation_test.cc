// Times of new files that wait are set also where memory ran out when they were to be.
#include <gtest/gtest.h>

#include "testing/failing_new.h"
#include "testing/nfs/new_files_world.h"

namespace stag::fuse {
namespace {

using namespace std::chrono_literals;

// In each allocation once, of the client as of the loop and the server that are in the same thread;
// then in all behind it.
TEST(SettlingMemory, running_out_amid_files_puts_off_those_that_are_left) {
  for (const bool lasts : {false, true})
    for (std::size_t n = 1;; ++n) {
      testing::NewFilesWorld world;
      for (std::uint64_t file = 1; file <= 3; ++file) world.begin(file);
      world.pass(Settling::kAfter - 1ms);
      testing::failed_allocations = 0;
      testing::failure_lasts = lasts;
      testing::allocations_until_failure = n;
      world.pass(10ms);
      testing::allocations_until_failure = 0;
      testing::failure_lasts = false;
      world.pass(2min);
      EXPECT_EQ(world.set.size(), 3u) << n;
      EXPECT_FALSE(world.files.any_waits()) << n;
      world.stop();
      if (testing::failed_allocations == 0 || HasFailure()) {
        EXPECT_GT(n, 10u) << "it allocates next to nothing";
        break;
      }
    }
}

}  // namespace
}  // namespace stag::fuse
