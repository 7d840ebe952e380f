// The table of inodes: nobody else can open it, not for a moment.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "testing/vfs/posix_backend.h"
#include "vfs/posix/inode_table.h"

namespace {

using std::filesystem::perms;

// Of the file, each time that it is opened, before SQLite could make it.
std::vector<perms> modes;

}  // namespace

extern "C" int sqlite3_open_v2(const char* name, sqlite3** to, int flags, const char* vfs) {
  static const auto open =
      reinterpret_cast<decltype(&sqlite3_open_v2)>(::dlsym(RTLD_NEXT, "sqlite3_open_v2"));
  modes.push_back(std::filesystem::status(name).permissions());  // unknown: it is not there
  return open(name, to, flags, vfs);
}

namespace stag::vfs::posix {
namespace {

TEST(InodeTableFile, makes_its_file_for_this_user_alone_from_the_beginning) {
  modes.clear();
  const vfs::testing::Folder folder("/tmp");
  const mode_t umask_before = ::umask(0);
  const auto opened = InodeTable::open(folder.path() / "names.db");
  ::umask(umask_before);
  ASSERT_TRUE(opened.ok());
  ASSERT_FALSE(modes.empty());
  for (const perms mode : modes) EXPECT_EQ(mode, perms::owner_read | perms::owner_write);
}

TEST(InodeTableFile, is_not_there_where_nothing_is_to_be_kept) {
  ASSERT_TRUE(InodeTable::open(std::string(InodeTable::kNoFile)).ok());
  EXPECT_FALSE(std::filesystem::exists(InodeTable::kNoFile));
}

}  // namespace
}  // namespace stag::vfs::posix
