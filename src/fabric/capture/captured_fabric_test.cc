// A captured fabric is as good as the one behind it, and tells what goes over it.
#include "fabric/capture/captured_fabric.h"

#include <atomic>

#include "fabric/sim/sim_fabric.h"
#include "testing/fabric_contract.h"

namespace stag::testing {
namespace {

class Counter final : public fabric::capture::Recorder {
 public:
  void take(Bytes) override { ++frames; }
  std::atomic<std::size_t> frames{0};
};

class CapturedHarness final : public FabricHarness {
 public:
  CapturedHarness()
      : fabric_(fabric::capture::captured(
            std::make_unique<fabric::SimFabric>(loop_, fabric::SimOptions()), counter_)) {}

  Loop& loop() override { return loop_; }
  fabric::Fabric& fabric() override { return *fabric_; }
  Address any_address() override { return {"server", 0}; }
  bool run_until(const std::function<bool()>& predicate) override {
    return loop_.run_until(predicate);
  }
  void settle() override { loop_.run_until_idle(); }

 private:
  fabric::SimLoop loop_{std::nullopt};
  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  std::unique_ptr<fabric::Fabric> fabric_;
};

INSTANTIATE_TEST_SUITE_P(Captured, FabricContract,
                         ::testing::Values(FabricFactory{
                             "captured", [] { return std::make_unique<CapturedHarness>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace stag::testing
