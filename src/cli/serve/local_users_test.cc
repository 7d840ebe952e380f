#include "cli/serve/local_users.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

TEST(LocalUsers, are_the_principals_of_the_own_realm) {
  const auto users = local_users([] { return std::string("HERE.ORG"); });
  const auto root = users->ids_of("root@HERE.ORG");
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(root->uid, 0u);
  EXPECT_EQ(root->gid, 0u);
  EXPECT_FALSE(root->gids.empty());
}

TEST(LocalUsers, are_nobody_else) {
  const auto users = local_users([] { return std::string("HERE.ORG"); });
  for (const char* name : {"root@THERE.ORG", "root@here.org", "root", "", "@HERE.ORG",
                           "no such user@HERE.ORG", "root/admin@HERE.ORG", "host/here@HERE.ORG"})
    EXPECT_FALSE(users->ids_of(name)) << name;
  EXPECT_FALSE(local_users([] { return std::string(); })->ids_of("root@"));
}

TEST(LocalUsers, come_after_those_of_another_service) {
  const auto users = one_of(local_users([] { return std::string("A"); }),
                            local_users([] { return std::string("B"); }));
  EXPECT_TRUE(users->ids_of("root@A"));
  EXPECT_TRUE(users->ids_of("root@B"));
  EXPECT_FALSE(users->ids_of("root@C"));
}

}  // namespace
}  // namespace stag::cli
