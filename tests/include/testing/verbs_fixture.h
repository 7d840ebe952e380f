// What the tests of fabric/verbs alone stand on.
#pragma once

#include <memory>
#include <utility>

#include "testing/fabric_contract/harness.h"
#include "testing/verbs_harness.h"

namespace stag::testing {

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

// Memory stays registered as long as its connection lives.
class OpenVerbsTest : public FabricTest {
 protected:
  explicit OpenVerbsTest(const fabric::stub::StubOptions& device = fabric::stub::rxe_like())
      : FabricTest(std::make_unique<VerbsHarness>(device, "127.0.0.1", AdjustVerbs(), true)) {}
  fabric::stub::StubNetwork& stub() { return static_cast<VerbsHarness&>(*harness).stub(); }
};

class SiwVerbsTest : public VerbsTest {
 protected:
  SiwVerbsTest() : VerbsTest(fabric::stub::siw_like()) {}
};

}  // namespace stag::testing
