// Drives fabric/verbs over the stub for the tests that every fabric passes.
#pragma once

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

inline fabric::VerbsOptions over(const fabric::stub::StubNetwork& network) {
  fabric::VerbsOptions options;
  options.functions = network.functions();
  options.max_registration = 16 << 20;
  return options;
}

class VerbsHarness final : private StubHolder, public EpollHarness {
 public:
  explicit VerbsHarness(fabric::stub::StubOptions device, std::string host = "127.0.0.1")
      : StubHolder({std::move(device)}),
        EpollHarness(std::move(host)),
        fabric_(loop(), over(network)) {}

  fabric::Fabric& fabric() override { return fabric_; }
  // A device moves its peer's bytes without a word.
  bool counts_the_peers_accesses() const override { return false; }
  fabric::stub::StubNetwork& stub() { return network; }

 private:
  fabric::VerbsFabric fabric_;
};

// Both sides of a connection over the stub, for tests of what only this provider has.
class VerbsTest : public FabricTest {
 protected:
  explicit VerbsTest(fabric::stub::StubOptions device = fabric::stub::rxe_like())
      : FabricTest(std::make_unique<VerbsHarness>(std::move(device))) {
    options.receive = acceptor.answer.receive = {8, 4096};
    options.receives_max = acceptor.answer.receives_max = 8;
    options.sends_max = acceptor.answer.sends_max = 32;
  }

  fabric::stub::StubNetwork& stub() { return static_cast<VerbsHarness&>(*harness).stub(); }
  Reason connect_reason(const Address& address) {
    const auto outcome = connect(address);
    return outcome && !outcome->ok() ? outcome->error() : Reason::None;
  }
  Reason listen_reason(const Address& at) {
    const auto made = fabric().listen(at, {}, acceptor);
    return made.ok() ? Reason::None : made.error();
  }
};

class SiwVerbsTest : public VerbsTest {
 protected:
  SiwVerbsTest() : VerbsTest(fabric::stub::siw_like()) {}
};

}  // namespace stag::testing
