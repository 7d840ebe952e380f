// A SimFabric and its SimLoop for tests.
#pragma once

#include <memory>
#include <optional>

#include "fabric/sim/sim_fabric.h"
#include "testing/fabric_harness.h"

namespace stag::testing {

class SimHarness final : public FabricHarness {
 public:
  explicit SimHarness(const fabric::SimOptions& options = {},
                      std::optional<std::uint64_t> shuffle = std::nullopt)
      : loop_(shuffle), fabric_(loop_, options) {}

  Loop& loop() override { return loop_; }
  fabric::Fabric& fabric() override { return fabric_; }
  fabric::SimFabric& sim() { return fabric_; }
  fabric::SimLoop& sim_loop() { return loop_; }
  Address any_address() override { return {"server", 0}; }
  bool run_until(const std::function<bool()>& predicate) override {
    return loop_.run_until(predicate);
  }
  void settle() override { loop_.run_until_idle(); }

 private:
  fabric::SimLoop loop_;
  fabric::SimFabric fabric_;
};

}  // namespace stag::testing
