#include "fuse/mount_point.h"

#include <gtest/gtest.h>

#include <sstream>

namespace stag::fuse {
namespace {

constexpr std::string_view kMounts =
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "90 22 0:53 / /mnt rw,nosuid - fuse.stag nfs://one rw\n"
    "91 22 0:54 / /a\\040long\\134name rw shared:7 - fuse.stag nfs://two rw\n"
    "92 90 0:55 / /mnt rw - tmpfs none rw\n"
    "93 92 0:56 / /mnt/below rw - fuse.stag nfs://three rw\n";

std::string on(std::string_view directory) {
  std::istringstream mountinfo{std::string(kMounts)};
  return device_mounted_on(directory, mountinfo);
}

TEST(MountPoint, knows_what_was_mounted_last_on_a_directory) {
  EXPECT_EQ(on("/mnt"), "0:55");
  EXPECT_EQ(on("/mnt/below"), "0:56");
  EXPECT_EQ(on("/mnt/other"), "");
}

TEST(MountPoint, finds_names_with_blanks) {
  EXPECT_EQ(on("/a long\\name"), "0:54");
}

}  // namespace
}  // namespace stag::fuse
