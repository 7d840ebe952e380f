// The contract suite: what every FileSystem keeps. A store joins all its parts as
// testing/vfs/backend.h shows.
#pragma once

#include "testing/vfs/contract_acl.h"
#include "testing/vfs/contract_changes.h"
#include "testing/vfs/contract_data.h"
#include "testing/vfs/contract_failures.h"
#include "testing/vfs/contract_list.h"
#include "testing/vfs/contract_names.h"
#include "testing/vfs/contract_permissions.h"
#include "testing/vfs/contract_ranges.h"
#include "testing/vfs/contract_refusals.h"
#include "testing/vfs/contract_space.h"

// In namespace stag::vfs::testing.
#define STAG_VFS_CONTRACT(prefix, backends)                                \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsContract, backends, name_of);        \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsRefusalContract, backends, name_of); \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsFailureContract, backends, name_of); \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsChangeContract, backends, name_of);  \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsSpaceContract, backends, name_of);   \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsRangeContract, backends, name_of);   \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsXattrContract, backends, name_of);   \
  INSTANTIATE_TEST_SUITE_P(prefix, VfsAclContract, backends, name_of)

// For stores of which a machine may have none.
#define STAG_VFS_CONTRACT_MAY_BE_IDLE()                              \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsContract);        \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsRefusalContract); \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsFailureContract); \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsChangeContract);  \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsSpaceContract);   \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsRangeContract);   \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsXattrContract);   \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VfsAclContract)
