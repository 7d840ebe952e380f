#include "fabric/verbs/verbs_functions.h"

#include <gtest/gtest.h>

#include "base/loop_credentials.h"

namespace stag::fabric {
namespace {

TEST(LoadVerbs, says_what_to_install_where_rdma_core_is_not) {
  const auto functions = load_verbs({"libibverbs-that-is-not-there.so.1", "librdmacm.so.1"});
  ASSERT_FALSE(functions.ok());
  EXPECT_EQ(functions.error(), Reason::VerbsLibraryMissing);
  EXPECT_NE(info(functions.error()).text.find("install libibverbs1, librdmacm1"),
            std::string_view::npos);
}

TEST(LoadVerbs, refuses_a_library_without_the_functions) {
  const auto functions = load_verbs({"libc.so.6", "libc.so.6"});
  ASSERT_FALSE(functions.ok());
  EXPECT_EQ(functions.error(), Reason::VerbsLibraryMissing);
}

TEST(LoadVerbs, finds_every_function_of_an_installed_rdma_core) {
  const auto functions = load_verbs();
  if (!functions.ok()) GTEST_SKIP() << "rdma-core is not installed";
  EXPECT_NE((*functions)->reg_mr, nullptr);
  EXPECT_NE((*functions)->query_port, nullptr);
  EXPECT_NE((*functions)->disconnect, nullptr);
  EXPECT_TRUE(loops_keep_credentials());
}

}  // namespace
}  // namespace stag::fabric
