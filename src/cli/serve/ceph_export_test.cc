#include "cli/serve/ceph_export.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

TEST(CephExport, is_told_from_a_folder_by_its_first_word) {
  EXPECT_TRUE(is_ceph("ceph:/"));
  EXPECT_FALSE(is_ceph("/srv/ceph:"));
  EXPECT_FALSE(is_ceph("./ceph:/"));
  EXPECT_FALSE(is_ceph(""));
}

TEST(CephExport, is_a_path_with_settings) {
  const auto plain = parse_ceph("ceph:/projects");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->path, "/projects");
  EXPECT_TRUE(plain->configuration.empty() && plain->id.empty());
  const auto full = parse_ceph("ceph:/?conf=/etc/other.conf&id=nfs&fs=home&gateway=a");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->path, "/");
  EXPECT_EQ(full->configuration, "/etc/other.conf");
  EXPECT_EQ(full->id, "nfs");
  EXPECT_EQ(full->file_system, "home");
  EXPECT_EQ(full->gateway, "a");
}

TEST(CephExport, ends_the_mount_that_goes_by_the_name_of_the_same_gateway) {
  const auto place = [](std::string_view text) { return *parse_ceph(text); };
  EXPECT_TRUE(ends_mount(place("ceph:/a?gateway=a"), place("ceph:/b?gateway=a&id=nfs")));
  EXPECT_FALSE(ends_mount(place("ceph:/a?gateway=a"), place("ceph:/a?gateway=b")));
  EXPECT_FALSE(ends_mount(place("ceph:/a?gateway=a"), place("ceph:/a")));
  EXPECT_FALSE(ends_mount(place("ceph:/a"), place("ceph:/b")));
}

TEST(CephAttempts, are_one_at_a_time_for_an_export) {
  CephAttempts attempts;
  CephAttempts::Wanted first = attempts.begin("/a");
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->load());
  EXPECT_EQ(attempts.begin("/a"), nullptr) << "it goes on";
  EXPECT_NE(attempts.begin("/b"), nullptr);
  first.reset();
  EXPECT_NE(attempts.begin("/a"), nullptr);
}

TEST(CephExport, is_refused_with_a_sentence_that_says_what_there_is) {
  for (const std::string_view wrong : {"ceph:", "ceph:projects", "ceph:?id=nfs"})
    EXPECT_NE(parse_ceph(wrong).error().find("from '/' on"), std::string::npos) << wrong;
  for (const std::string_view wrong :
       {"ceph:/?user=nfs", "ceph:/?id", "ceph:/?id=", "ceph:/?id=a&&fs=b"})
    EXPECT_NE(parse_ceph(wrong).error().find("id=NAME"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace stag::cli
