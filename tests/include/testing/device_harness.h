// Drives fabric/verbs on the RDMA devices of this machine, for the tests that every fabric passes:
// where STAG_VERBS_ADDRESSES names addresses that they serve, separated by commas, as in a guest of
// tests/interop, on Linux's rxe and siw.
#pragma once

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "fabric/verbs/device_list.h"
#include "fabric/verbs/verbs_fabric.h"
#include "testing/epoll_harness.h"

namespace stag::testing {

class DeviceHarness final : public EpollHarness {
 public:
  explicit DeviceHarness(std::string host, bool open_regions = false)
      : EpollHarness(std::move(host), std::chrono::minutes(5)), fabric_(loop(), {.open_regions = open_regions, .max_registration = 16 << 20}) {
    set_trace_sink(print);
  }
  ~DeviceHarness() override { set_trace_sink(nullptr); }

  fabric::Fabric& fabric() override { return fabric_; }
  bool counts_the_peers_accesses() const override { return false; }
  bool refuses_reads_of_sinks() const override { return !is_iwarp(); }
  bool tells_read_depths_apart() const override { return !is_iwarp(); }

 private:
  // Where a test fails nobody can look into the device.
  static void print(Reason reason, std::string_view where, std::string_view detail) {
    std::cerr << to_string(reason) << ' ' << where << ' ' << detail << '\n';
  }
  static bool is_iwarp() {
    const auto functions = fabric::load_verbs();
    const auto devices = fabric::list_devices(**functions);
    return devices.ok() && devices->front().traits.iwarp;
  }
  fabric::VerbsFabric fabric_;
};

// Called at0, at1 and so on.
inline std::vector<FabricFactory> devices_of_this_machine(const std::string& name = "at",
                                                          bool open_regions = false) {
  std::vector<FabricFactory> factories;
  const char* addresses = std::getenv("STAG_VERBS_ADDRESSES");
  std::istringstream words(addresses != nullptr ? addresses : "");
  for (std::string host; std::getline(words, host, ',');)
    factories.push_back(
        {name + std::to_string(factories.size()),
         [=] { return std::make_unique<DeviceHarness>(host, open_regions); }});
  return factories;
}

}  // namespace stag::testing
