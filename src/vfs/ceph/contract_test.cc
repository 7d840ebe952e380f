#include "testing/vfs/contract.h"

#include "testing/vfs/ceph_backend.h"

namespace stag::vfs::testing {
namespace {

BackendFactory ceph_with(const char* name, bool durable_names) {
  return {name, [durable_names] { return std::make_unique<CephBackend>(durable_names); }};
}

std::vector<BackendFactory> ceph_stores() {
  if (ceph_configuration() == nullptr) return {};
  return {ceph_with("ceph", false), ceph_with("durable", true)};
}

TEST(CephContract, is_kept_on_a_cluster) {
  if (ceph_configuration() == nullptr)
    GTEST_SKIP() << "there is no cluster here: tests/ceph/run starts one";
  EXPECT_FALSE(ceph_stores().empty());
}

}  // namespace

STAG_VFS_CONTRACT_MAY_BE_IDLE();
STAG_VFS_CONTRACT(Ceph, ::testing::ValuesIn(ceph_stores()));

}  // namespace stag::vfs::testing
