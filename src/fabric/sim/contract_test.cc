#include "testing/fabric_contract.h"
#include "testing/sim_harness.h"

namespace stag::testing {
namespace {

FabricFactory calm() {
  return {"calm", [] { return std::make_unique<SimHarness>(fabric::SimOptions(), std::nullopt); }};
}

// All that the contract leaves open, left to chance.
FabricFactory rough(std::uint64_t seed) {
  fabric::SimOptions options;
  options.seed = seed;
  options.faults.max_delay = std::chrono::milliseconds(1);
  options.faults.reorder_flows = true;
  options.faults.pending_revocation_permille = 500;
  return {"rough" + std::to_string(seed),
          [options, seed] { return std::make_unique<SimHarness>(options, seed); }};
}

// Memory that is taken back while the peer may still write to it costs the connection.
FabricFactory undiscarding() {
  fabric::SimOptions options;
  options.discards = false;
  return {"undiscarding",
          [options] { return std::make_unique<SimHarness>(options, std::nullopt); }};
}

INSTANTIATE_TEST_SUITE_P(Sim, FabricContract,
                         ::testing::Values(calm(), undiscarding(), rough(1), rough(2), rough(3)),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace stag::testing
