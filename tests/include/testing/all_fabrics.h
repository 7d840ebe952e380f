// Every fabric, for suites above the fabric that are run on all of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/device_harness.h"
#include "testing/iwarp_harness.h"
#include "testing/sim_harness.h"
#include "testing/verbs_harness.h"

namespace stag::testing {

// Queues so short that everything waits for something.
inline fabric::stub::StubOptions cramped() {
  fabric::stub::StubOptions device = fabric::stub::rxe_like();
  device.attributes.max_qp_wr = 4;
  device.attributes.max_sge = device.attributes.max_sge_rd = 2;
  device.max_inline = 0;
  return device;
}

inline FabricFactory simulated(std::string name, bool discards) {
  fabric::SimOptions options;
  options.discards = discards;
  return {std::move(name), [options] { return std::make_unique<SimHarness>(options); }};
}

inline FabricFactory stubbed(std::string name, const fabric::stub::StubOptions& device) {
  return {std::move(name), [device] { return std::make_unique<VerbsHarness>(device); }};
}

inline std::unique_ptr<FabricHarness> with_open_regions() {
  return std::make_unique<VerbsHarness>(fabric::stub::rxe_like(), "127.0.0.1", AdjustVerbs(), true);
}

inline std::vector<FabricFactory> all_fabrics() {
  const auto iwarp = [] {
    return std::make_unique<IwarpHarness>(fabric::IwarpOptions(), "127.0.0.1");
  };
  std::vector<FabricFactory> all{
      simulated("sim", true),
      simulated("undiscarding", false),
      {"iwarp", iwarp},
      stubbed("rxe", fabric::stub::rxe_like()),
      stubbed("siw", fabric::stub::siw_like()),
      stubbed("cramped", cramped()),
  };
  for (FabricFactory& device : devices_of_this_machine()) all.push_back(std::move(device));
  return all;
}

// And one where data is at its place when a call has ended, not before.
inline std::vector<FabricFactory> all_fabrics_for_calls() {
  std::vector<FabricFactory> all = all_fabrics();
  all.push_back({"open", with_open_regions});
  for (FabricFactory& device : devices_of_this_machine("open_at", true))
    all.push_back(std::move(device));
  return all;
}

inline std::string fabric_name(const ::testing::TestParamInfo<FabricFactory>& tested) {
  return tested.param.name;
}

}  // namespace stag::testing
