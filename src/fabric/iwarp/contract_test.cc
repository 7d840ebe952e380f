#include "testing/fabric_contract.h"
#include "testing/iwarp_harness.h"

namespace stag::testing {
namespace {

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
