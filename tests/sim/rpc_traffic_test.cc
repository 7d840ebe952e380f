// RPC-over-RDMA traffic of several clients with one server over fabric/sim, under faults: whatever
// happens to connections, calls end with the right results or the error that was asked for, and
// what must run once runs once.
#include <gtest/gtest.h>

#include "rpc_world.h"
#include "seeds.h"

namespace stag::testing {
namespace {

TEST(RpcTraffic, every_call_ends_well_under_faults_whatever_the_seed) {
  for_each_seed([](std::uint64_t seed) { RpcWorld(seed).run(); });
}

}  // namespace
}  // namespace stag::testing
