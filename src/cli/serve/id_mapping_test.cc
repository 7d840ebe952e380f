// The real libnfsidmap, where it is installed: users that every machine has.
#include "cli/serve/id_mapping.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using nfs::nfs4::IdKind;

TEST(LibNfsIdMap, knows_the_users_and_groups_of_this_machine_in_its_domain) {
  const auto names = open_libnfsidmap("example.net");
  if (!names) GTEST_SKIP() << names.error();
  EXPECT_EQ((*names)->name_of(IdKind::User, 0), "root@example.net");
  EXPECT_EQ((*names)->name_of(IdKind::Group, 0), "root@example.net");
  EXPECT_EQ((*names)->id_of(IdKind::User, "root@example.net"), 0u);
  EXPECT_EQ((*names)->id_of(IdKind::Group, "root@example.net"), 0u);
}

TEST(LibNfsIdMap, knows_nobody_else) {
  const auto names = open_libnfsidmap("example.net");
  if (!names) GTEST_SKIP() << names.error();
  for (const char* name : {"root@elsewhere.net", "root", "", "@", "@example.net",
                           "no such@example.net", "root@example.net@example.net"})
    EXPECT_FALSE((*names)->id_of(IdKind::User, name)) << name;
  EXPECT_FALSE((*names)->name_of(IdKind::User, 0xfffffff0u));
}

TEST(IdMapping, refuses_what_is_no_domain) {
  IdMappingOptions options;
  nfs::nfs4::Nfs4Options to;
  for (const char* domain : {"a b", "a\nMethod = static", "user@domain"}) {
    options.domain = domain;
    EXPECT_FALSE(options.apply(to)) << domain;
  }
}

}  // namespace
}  // namespace stag::cli
