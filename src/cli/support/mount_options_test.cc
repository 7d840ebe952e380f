#include "cli/support/mount_options.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using Words = std::vector<std::string>;

TEST(MountOptions, what_is_for_mount_and_systemd_alone_is_left_out) {
  const auto words = mount_words({"rw,noauto,users,_netdev,nofail,x-systemd.automount,defaults"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->passed_on, Words{});
}

TEST(MountOptions, what_mount_has_for_every_file_system_is_taken_also_where_it_means_nothing) {
  const auto words = mount_words(
      {"relatime,norelatime,strictatime,nostrictatime,lazytime,nolazytime,diratime,nodiratime",
       "iversion,noiversion,mand,nomand,silent,loud,auto,user=joe,X-mount.mkdir,comment=ours"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->passed_on, Words{});
}

TEST(MountOptions, a_server_is_tried_again_for_a_number_of_minutes) {
  EXPECT_EQ(mount_words({"ro"})->retry, std::nullopt);
  EXPECT_EQ(mount_words({"ro,retry=0"})->retry, 0u);
  EXPECT_EQ(mount_words({"retry=10000"})->retry, 10'000u);
  for (const char* wrong : {"retry=", "retry=-1", "retry=10001", "retry=2m"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountOptions, what_FUSE_knows_is_passed_on) {
  const auto words = mount_words({"ro,allow_other", "", "nosuid"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->passed_on, (Words{"ro", "allow_other", "nosuid", "default_permissions"}))
      << "others have the rights that modes give them, not those of who mounts";
  EXPECT_FALSE(words->direct);
}

TEST(MountOptions, the_time_for_which_attributes_are_used_is_a_number_of_seconds) {
  EXPECT_EQ(mount_words({"actimeo=0"})->valid, 0);
  EXPECT_EQ(mount_words({"direct,actimeo=2.5"})->valid, 2.5);
  EXPECT_EQ(mount_words({""})->valid, 1);
  for (const char* wrong : {"actimeo=", "actimeo=x", "actimeo=1s", "actimeo=-1", "actimeo=1e9"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountOptions, connections_are_one_to_sixteen) {
  EXPECT_EQ(mount_words({"ro"})->connections, std::nullopt);
  EXPECT_EQ(mount_words({"ro,nconnect=4"})->connections, 4u);
  for (const char* wrong : {"nconnect=", "nconnect=0", "nconnect=17", "nconnect=4x"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountHelper, is_called_by_mount_in_its_own_way) {
  const auto words = from_mount_helper(
      {"mount.stag", "nfs://server/data", "/mnt", "-n", "-o", "ro,_netdev", "-t", "stag", "-v"});
  EXPECT_EQ(words, (Words{"stag", "mount", "nfs://server/data", "/mnt", "-o", "ro,_netdev"}));
  EXPECT_EQ(from_mount_helper({"mount.stag", "nfs://server/data", "/mnt", "-fnv"}), std::nullopt);
  EXPECT_EQ(from_mount_helper({"mount.stag", "-o"}), (Words{"stag", "mount"}));
}

}  // namespace
}  // namespace stag::cli
