// fabric/verbs on a machine with two RDMA devices: "first" serves 127.0.0.1, "second" 127.0.0.2 and
// ::1.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "testing/verbs_harness.h"

namespace stag::testing {

class TwoDevices final : private StubHolder, public EpollHarness {
 public:
  // fabric() uses the device called `name` only.
  explicit TwoDevices(const std::string& name,
                      fabric::stub::StubOptions first = fabric::stub::rxe_like(),
                      fabric::stub::StubOptions second = fabric::stub::rxe_like(),
                      bool open_regions = false)
      : StubHolder({placed(std::move(first), "first", {"127.0.0.1"}),
                    placed(std::move(second), "second", {"127.0.0.2", "::1"})}),
        EpollHarness("127.0.0.1"),
        any_(loop(), over(network)),
        named_(loop(), named(name, open_regions)) {}

  fabric::Fabric& fabric() override { return named_; }
  // Uses both.
  fabric::Fabric& any() { return any_; }

 private:
  static fabric::stub::StubOptions placed(fabric::stub::StubOptions device, std::string name,
                                          std::vector<std::string> addresses) {
    device.name = std::move(name);
    device.addresses = std::move(addresses);
    return device;
  }
  fabric::VerbsOptions named(const std::string& name, bool open_regions) {
    fabric::VerbsOptions options = over(network, {}, open_regions);
    options.device = name;
    options.local_addresses = [] {
      return std::vector<Address>{{"192.0.2.1", 0}, {"127.0.0.1", 0}, {"127.0.0.2", 0}, {"::1", 0}};
    };
    return options;
  }
  fabric::VerbsFabric any_, named_;
};

}  // namespace stag::testing
