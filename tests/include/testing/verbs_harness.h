// Drives fabric/verbs over the stub for the tests that every fabric passes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/stub/stub_network.h"
#include "fabric/verbs/verbs_fabric.h"
#include "testing/epoll_harness.h"

namespace stag::testing {

// Outlives the loop, and with it all that waits to run there.
struct StubHolder {
  explicit StubHolder(std::vector<fabric::stub::StubOptions> devices)
      : network(std::move(devices)) {}
  ~StubHolder() {
    EXPECT_EQ(network.objects(), 0u) << "something of the devices was left behind";
    EXPECT_TRUE(network.misuses().empty()) << network.misuses().front();
  }
  fabric::stub::StubNetwork network;
};

using AdjustVerbs = std::function<void(fabric::VerbsFunctions&)>;

// `adjust` sees the functions before they are used.
inline fabric::VerbsOptions over(const fabric::stub::StubNetwork& network,
                                 const AdjustVerbs& adjust = {}, bool open_regions = false) {
  const auto functions = std::make_shared<fabric::VerbsFunctions>(*network.functions());
  if (adjust) adjust(*functions);
  fabric::VerbsOptions options;
  options.functions = functions;
  options.max_registration = 16 << 20;
  options.open_regions = open_regions;
  options.listen_again_after = std::chrono::milliseconds(1);
  return options;
}

class VerbsHarness final : private StubHolder, public EpollHarness {
 public:
  explicit VerbsHarness(fabric::stub::StubOptions device, std::string host = "127.0.0.1",
                        const AdjustVerbs& adjust = {}, bool open_regions = false)
      : StubHolder({device}),
        EpollHarness(std::move(host)),
        iwarp_(device.iwarp),
        open_regions_(open_regions),
        fabric_(loop(), over(network, adjust, open_regions)) {}

  fabric::Fabric& fabric() override { return fabric_; }
  // A device moves its peer's bytes without a word.
  bool counts_the_peers_accesses() const override { return false; }
  bool tells_read_depths_apart() const override { return !iwarp_; }
  fabric::stub::StubNetwork& stub() { return network; }
  // Whether memory stays open to the peer after its call.
  bool open_regions() const { return open_regions_; }

 private:
  const bool iwarp_, open_regions_;
  fabric::VerbsFabric fabric_;
};

}  // namespace stag::testing
