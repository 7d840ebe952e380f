// What the client of version 4 keeps where memory runs out.
#include <gtest/gtest.h>

#include "testing/failing_new.h"
#include "testing/nfs/client_harness.h"
#include "testing/nfs/nfs4_client_world.h"

namespace stag::nfs::client {
namespace {

// Whether memory ran out before the answer.
bool getattr_with(testing::Nfs4ClientWorld& world, std::size_t allocations) {
  FileSystem& files = world.files();
  bool failed = false;
  try {
    testing::allocations_until_failure = allocations;
    failed = world.run(runs_out_of_memory(files.getattr(files.root())));
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  testing::allocations_until_failure = 0;
  return failed;
}

TEST(Nfs4ClientMemory, that_runs_out_takes_no_slot_of_the_session) {
  testing::Nfs4ClientWorld world(1);
  int failures = 0;
  for (std::size_t allocations = 1; allocations < 40; ++allocations)
    for (std::uint32_t i = 0; i <= session::Slots::kMost; ++i)
      failures += getattr_with(world, allocations) ? 1 : 0;
  EXPECT_GT(failures, 0);
  EXPECT_TRUE(world.run(world.files().getattr(world.files().root())).ok());
}

}  // namespace
}  // namespace stag::nfs::client
