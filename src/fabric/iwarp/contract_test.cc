#include "fabric/iwarp/iwarp_fabric.h"
#include "net/loop.h"
#include "testing/fabric_contract.h"

namespace stag::testing {
namespace {

class IwarpHarness final : public FabricHarness {
 public:
  IwarpHarness(fabric::IwarpOptions options, std::string host)
      : fabric_(options), host_(std::move(host)) {}

  Loop& loop() override { return loop_; }
  fabric::Fabric& fabric() override { return fabric_; }
  Address any_address() override { return {host_, 0}; }
  bool run_until(const std::function<bool()>& predicate) override {
    // Generous, for slow machines: only a failing test waits for it.
    const TimePoint limit = loop_.now() + std::chrono::seconds(20);
    while (!predicate()) {
      if (loop_.now() > limit) return false;
      run_for(std::chrono::microseconds(50));
    }
    return true;
  }
  void settle() override { run_for(std::chrono::milliseconds(20)); }

 private:
  void run_for(Duration time) {
    const Timer end = loop_.after(time, [this] { loop_.stop(); });
    loop_.run();
  }

  net::AsioLoop loop_;
  fabric::IwarpFabric fabric_;
  std::string host_;
};

FabricFactory iwarp(std::string name, fabric::IwarpOptions options = {},
                    std::string host = "127.0.0.1") {
  return {std::move(name),
          [options, host] { return std::make_unique<IwarpHarness>(options, host); }};
}

FabricFactory with_crc() {
  fabric::IwarpOptions options;
  options.always_crc = true;
  return iwarp("crc", options);
}

// FPDUs the size of Ethernet frames, short turns and small socket buffers: everything comes in
// parts.
FabricFactory in_parts() {
  fabric::IwarpOptions options;
  options.max_ulpdu = 1440;
  options.write_message = 5000;
  options.turn_bytes = 10'000;
  options.tcp.send_buffer = options.tcp.receive_buffer = 128 * 1024;
  return iwarp("parts", options);
}

INSTANTIATE_TEST_SUITE_P(Iwarp, FabricContract,
                         ::testing::Values(iwarp("plain"), with_crc(), in_parts(),
                                           iwarp("ipv6", {}, "::1")),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace stag::testing
