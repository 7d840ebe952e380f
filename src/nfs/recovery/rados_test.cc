#include "nfs/recovery/rados.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stag::nfs::recovery {
namespace {

using ::testing::HasSubstr;

TEST(RecordsInRados, say_which_package_is_missing) {
  RadosLibraries none;
  none.sqlite_vfs = "libcephsqlite-of-nobody.so";
  const auto ready = make_ready({"nfs", "a", "", ""}, Existing::Maybe, none);
  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error(), HasSubstr("(Debian: libsqlite3-mod-ceph): "));
  EXPECT_THAT(ready.error(), HasSubstr("libcephsqlite-of-nobody.so"));
}

TEST(RecordsInRados, take_no_library_for_what_it_is_not) {
  RadosLibraries other;
  other.sqlite_vfs = "libsqlite3.so.0";
  const auto ready = make_ready({"nfs", "a", "", ""}, Existing::Maybe, other);
  ASSERT_FALSE(ready.ok());
  EXPECT_THAT(ready.error(), HasSubstr("cephsqlite_setcct"));
}

}  // namespace
}  // namespace stag::nfs::recovery
