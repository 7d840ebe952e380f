#include "cli/serve/local_users.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "testing/failing_users.h"

namespace stag::cli {
namespace {

using nfs::NoUser;
using testing::FailingUsers;

TEST(LocalUsers, are_the_principals_of_the_own_realm) {
  const auto users = local_users([] { return std::string("HERE.ORG"); });
  const auto root = users->ids_of("root@HERE.ORG");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->uid, 0u);
  EXPECT_EQ(root->gid, 0u);
  EXPECT_FALSE(root->gids.empty());
}

TEST(LocalUsers, are_nobody_else) {
  const auto users = local_users([] { return std::string("HERE.ORG"); });
  for (const char* name : {"root@THERE.ORG", "root@here.org", "root", "", "@HERE.ORG",
                           "no such user@HERE.ORG", "root/admin@HERE.ORG", "host/here@HERE.ORG"})
    EXPECT_EQ(users->ids_of(name).error(), NoUser::Unknown) << name;
  EXPECT_FALSE(local_users([] { return std::string(); })->ids_of("root@"));
}

TEST(LocalUsers, are_not_known_to_be_nobody_until_the_realm_is_found) {
  std::string realm;
  const auto users = local_users([&realm] { return realm; });
  EXPECT_EQ(users->ids_of("root@HERE.ORG").error(), NoUser::Failed);
  EXPECT_EQ(users->ids_of("nfs/client.here.org@HERE.ORG").error(), NoUser::Unknown)
      << "a machine is no user of any realm";
  realm = "HERE.ORG";
  EXPECT_TRUE(users->ids_of("root@HERE.ORG"));
  EXPECT_EQ(users->ids_of("root@THERE.ORG").error(), NoUser::Unknown);
  realm.clear();
  EXPECT_TRUE(users->ids_of("root@HERE.ORG")) << "what was found is kept";
}

TEST(LocalUsers, are_not_known_to_be_nobody_while_the_name_service_fails) {
  const auto users = local_users([] { return std::string("HERE.ORG"); });
  {
    const FailingUsers failing;
    EXPECT_EQ(users->ids_of("root@HERE.ORG").error(), NoUser::Failed);
    EXPECT_EQ(users->ids_of("no such user@HERE.ORG").error(), NoUser::Failed);
  }
  EXPECT_TRUE(users->ids_of("root@HERE.ORG"));
}

TEST(LocalGroups, are_those_of_users_who_are_known) {
  const auto groups = local_groups();
  const auto of_root = groups->groups_of(0);
  ASSERT_TRUE(of_root.ok());
  EXPECT_EQ(std::ranges::count(*of_root, 0u), 1);
  EXPECT_EQ(groups->groups_of(3999999999).error(), NoUser::Unknown);
  const FailingUsers failing;
  EXPECT_EQ(groups->groups_of(0).error(), NoUser::Failed);
}

TEST(LocalUsers, are_no_machines_even_while_the_name_service_fails) {
  const auto users = local_users([] { return std::string("HERE.ORG"); });
  const FailingUsers failing;
  EXPECT_EQ(users->ids_of("nfs/client.here.org@HERE.ORG").error(), NoUser::Unknown);
}

TEST(LocalUsers, come_after_those_of_another_service) {
  const auto users = one_of(local_users([] { return std::string("A"); }),
                            local_users([] { return std::string("B"); }));
  EXPECT_TRUE(users->ids_of("root@A"));
  EXPECT_TRUE(users->ids_of("root@B"));
  EXPECT_FALSE(users->ids_of("root@C"));
}

TEST(LocalUsers, do_not_decide_where_the_service_before_them_has_failed) {
  class Failing final : public nfs::PrincipalService {
    Result<nfs::PrincipalIds, NoUser> ids_of(const std::string&) override {
      return Failure{NoUser::Failed};
    }
  };
  const auto users =
      one_of(std::make_shared<Failing>(), local_users([] { return std::string("A"); }));
  const auto root = users->ids_of("root@A");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error(), NoUser::Failed);
}

}  // namespace
}  // namespace stag::cli
