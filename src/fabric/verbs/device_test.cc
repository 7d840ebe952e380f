// The contract suite on RDMA devices of this machine.
#include "testing/device_harness.h"
#include "testing/fabric_contract.h"

namespace stag::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Device, FabricContract, ::testing::ValuesIn(devices_of_this_machine()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace stag::testing
