// The contract suite on the stub, as several devices, and on RDMA devices of this machine.
#include "testing/device_harness.h"
#include "testing/fabric_contract.h"
#include "testing/verbs_harness.h"

namespace stag::testing {
namespace {

using fabric::stub::StubOptions;

FabricFactory verbs(std::string name, StubOptions device, std::string host = "127.0.0.1") {
  return {std::move(name), [device, host] { return std::make_unique<VerbsHarness>(device, host); }};
}

StubOptions without_shared_receives() {
  StubOptions device = fabric::stub::rxe_like();
  device.attributes.max_srq = device.attributes.max_srq_wr = 0;
  return device;
}

// InfiniBand without windows: memory is registered for each call.
StubOptions without_windows() {
  StubOptions device = without_shared_receives();
  device.attributes.device_cap_flags = 0;
  device.attributes.max_mw = 0;
  return device;
}

// Queues so short that everything waits for something.
StubOptions cramped() {
  StubOptions device = fabric::stub::rxe_like();
  device.attributes.max_qp_wr = 4;
  device.attributes.max_sge = device.attributes.max_sge_rd = 2;
  device.max_inline = 0;
  return device;
}

// A queue of completions for each connection, and little room in it for sends.
StubOptions with_small_queues() {
  StubOptions device = fabric::stub::siw_like();
  device.attributes.max_cqe = 270;
  return device;
}

INSTANTIATE_TEST_SUITE_P(Verbs, FabricContract,
                         ::testing::Values(verbs("rxe", fabric::stub::rxe_like()),
                                           verbs("rxe6", fabric::stub::rxe_like(), "::1"),
                                           verbs("siw", fabric::stub::siw_like()),
                                           verbs("unshared", without_shared_receives()),
                                           verbs("windowless", without_windows()),
                                           verbs("bnxt_re", fabric::stub::bnxt_re_like()),
                                           verbs("cramped", cramped()),
                                           verbs("small_queues", with_small_queues())),
                         [](const auto& tested) { return tested.param.name; });
INSTANTIATE_TEST_SUITE_P(Device, FabricContract, ::testing::ValuesIn(devices_of_this_machine()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace stag::testing
