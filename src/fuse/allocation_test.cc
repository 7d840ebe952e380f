// Where memory runs out: times of new files that wait are set all the same, and what the kernel
// forgets or closes, which it does not say twice, goes.
#include <gtest/gtest.h>

#include <vector>

#include "fuse/inodes.h"
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

nfs::client::Handle long_handle(std::uint8_t first) {
  const std::vector<std::byte> bytes(nfs::client::Handle::kMaxSize, std::byte{first});
  return *nfs::client::Handle::from(bytes);
}

// Of this thread every allocation fails while it is there.
struct NoMemory {
  NoMemory() {
    testing::failed_allocations = 0;
    testing::failure_lasts = true;
    testing::allocations_until_failure = 1;
  }
  ~NoMemory() {
    testing::allocations_until_failure = 0;
    testing::failure_lasts = false;
  }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

TEST(InodesMemory, none_is_needed_to_forget_and_to_close) {
  Inodes inodes(long_handle(1));
  const std::uint64_t forgotten = inodes.enter(long_handle(2)),
                      closed = inodes.enter(long_handle(3)), kept = inodes.enter(long_handle(4));
  inodes.call(forgotten, Inodes::kRoot, "a name too long to be stored in place");
  inodes.open(*inodes.find(closed));
  inodes.forget(closed, 1);
  {
    const Inodes::Reference reference(inodes, kept);
    inodes.forget(kept, 1);
    const NoMemory none;
    inodes.forget(forgotten, 1);
    EXPECT_TRUE(inodes.close(closed));
  }
  EXPECT_EQ(testing::failed_allocations, 0u);
  EXPECT_EQ(inodes.size(), 1u);
}

}  // namespace
}  // namespace stag::fuse
