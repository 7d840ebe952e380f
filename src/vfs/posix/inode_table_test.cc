#include "vfs/posix/inode_table.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "testing/vfs/posix_backend.h"

namespace stag::vfs::posix {
namespace {

TEST(InodeTable, is_kept_where_nobody_else_can_read) {
  const vfs::testing::Folder folder("/tmp");
  const auto table = InodeTable::open(folder.path() / "names.db");
  ASSERT_TRUE(table.ok());
  using std::filesystem::perms;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_EQ(entry.status().permissions(), perms::owner_read | perms::owner_write) << entry.path();
}

}  // namespace
}  // namespace stag::vfs::posix
