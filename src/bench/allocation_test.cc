// NULL, GETATTR, and READ and WRITE of 4 KiB on software iWARP, 32 at a time, take nothing from the
// heap once they are under way: neither the client nor the server, which are both in this process.
#include <gtest/gtest.h>

#include "bench/worlds/iwarp_world.h"
#include "testing/counted_new.h"

namespace stag::bench {
namespace {

// Heap allocations of both sides during 2000 calls.
std::size_t allocations_of(IwarpWorld& world, Operation operation) {
  const std::size_t before = testing::heap_allocations.load();
  EXPECT_TRUE(world.run(operation, 2000, 32));
  return testing::heap_allocations.load() - before;
}

TEST(Call, of_nfs_on_software_iwarp_allocates_nothing_in_steady_state) {
  IwarpWorld world;
  for (const Operation operation :
       {Operation::Null, Operation::Getattr, Operation::Read, Operation::Write}) {
    SCOPED_TRACE(static_cast<int>(operation));
    (void)allocations_of(world, operation);
    // What starts and awaits the workers is not of the calls.
    EXPECT_LE(allocations_of(world, operation), 16u);
  }
}

}  // namespace
}  // namespace stag::bench
