// What stays in the table of inodes when programs of this machine remove and move files.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "testing/vfs/posix_backend.h"
#include "vfs/posix/object.h"

namespace stag::vfs {
namespace {

namespace files = std::filesystem;

using posix::HandleKind;
using testing::finish;
using testing::Folder;
using testing::kDisk;

class PosixSweep : public ::testing::Test {
 protected:
  void SetUp() override {
    files::create_directory(folder.path() / "state");
    files::create_directory(root());
    open();
  }
  void open() {
    auto opened = PosixFileSystem::open({.root = root(),
                                         .state_directory = folder.path() / "state",
                                         .handles = HandleKind::Table,
                                         .durable_names = false});
    STAG_CHECK(opened.ok());
    fs = *std::move(opened);
  }
  files::path root() const { return folder.path() / "export"; }
  CallerContext caller() { return {loop, user}; }
  Handle look_up(const Handle& directory, const std::string& name) {
    const auto found = finish(loop, fs->lookup(caller(), directory, name));
    STAG_CHECK(found.ok());
    return found->node.handle;
  }
  // By its names alone.
  bool is_found(const Handle& object) {
    posix::ObjectCache::drop_all();
    return finish(loop, fs->attributes(caller(), object)).ok();
  }
  // Files that stay, and that nobody knew.
  void look_up_new_files(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "new" + std::to_string(++new_files);
      std::ofstream(root() / name).put('x');
      look_up(fs->root(), name);
    }
  }
  // Of the names in the table.
  int rows(const std::string& where = "1") {
    int count = -1;
    for (const auto& entry : files::directory_iterator(folder.path() / "state")) {
      if (entry.path().extension() != ".sqlite") continue;
      sqlite3* table = nullptr;
      STAG_CHECK(sqlite3_open(entry.path().c_str(), &table) == SQLITE_OK);
      const std::string text = "SELECT count(*) FROM names WHERE " + where;
      sqlite3_stmt* query = nullptr;
      STAG_CHECK(sqlite3_prepare_v2(table, text.c_str(), -1, &query, nullptr) == SQLITE_OK);
      STAG_CHECK(sqlite3_step(query) == SQLITE_ROW);
      count = sqlite3_column_int(query, 0);
      sqlite3_finalize(query);
      sqlite3_close(table);
    }
    return count;
  }

  const Folder folder{kDisk};
  testing::InlineLoop loop;
  const Credentials user{0, 0, {}};
  std::unique_ptr<PosixFileSystem> fs;
  int new_files = 0;
};

TEST_F(PosixSweep, names_that_local_programs_removed_do_not_pile_up) {
  for (int round = 0; round < 20; ++round) {
    const std::string prefix = std::to_string(round) + ".";
    for (int i = 0; i < 100; ++i) std::ofstream(root() / (prefix + std::to_string(i))).put('x');
    testing::Names listed;
    ListFrom from;
    from.with_nodes = true;
    from.budget = 1 << 20;
    EXPECT_TRUE(finish(loop, fs->list(caller(), fs->root(), from, listed)).ok());
    EXPECT_EQ(listed.nodes.size(), 102u);
    for (int i = 0; i < 100; ++i) files::remove(root() / (prefix + std::to_string(i)));
  }
  EXPECT_LE(rows(), 300);
}

TEST_F(PosixSweep, nothing_stays_of_a_tree_that_a_local_program_removed) {
  Handle directory = fs->root();
  files::path path = root();
  for (int depth = 0; depth < 6; ++depth) {
    path /= "tree";
    files::create_directory(path);
    directory = look_up(directory, "tree");
    for (int i = 0; i < 20; ++i) {
      std::ofstream(path / std::to_string(i)).put('x');
      look_up(directory, std::to_string(i));
    }
  }
  files::remove_all(root() / "tree");
  posix::ObjectCache::drop_all();
  look_up_new_files(250);
  EXPECT_EQ(rows(), 250);
}

// Its own name and those below are retired; handles are good again when a lookup finds it.
TEST_F(PosixSweep, a_directory_that_was_moved_keeps_the_handles_below_it) {
  files::create_directories(root() / "before" / "inner");
  std::ofstream(root() / "before" / "inner" / "file").put('x');
  const Handle before = look_up(fs->root(), "before");
  const Handle file = look_up(look_up(before, "inner"), "file");
  files::rename(root() / "before", root() / "after");
  EXPECT_FALSE(is_found(file));
  look_up_new_files(200);
  EXPECT_EQ(rows(), 200);
  EXPECT_EQ(look_up(fs->root(), "after"), before);
  EXPECT_TRUE(is_found(file));
  EXPECT_EQ(rows(), 203) << "with the three that lead to the file";
}

TEST_F(PosixSweep, a_file_that_is_moved_away_and_back_keeps_its_handle) {
  std::ofstream(root() / "file").put('x');
  const Handle file = look_up(fs->root(), "file");
  files::rename(root() / "file", folder.path() / "away");
  posix::ObjectCache::drop_all();
  look_up_new_files(100);
  EXPECT_EQ(rows(), 100);
  files::rename(folder.path() / "away", root() / "file");
  EXPECT_TRUE(is_found(file));
}

TEST_F(PosixSweep, names_stay_below_a_directory_that_cannot_be_looked_into_now) {
  files::create_directory(root() / "directory");
  std::ofstream(root() / "directory" / "file").put('x');
  // A folder that was opened before does not see the mounts that are the process's own.
  if (testing::SmallDisk::on(root() / "directory", 1 << 20) == nullptr)
    GTEST_SKIP() << "no right to mount";
  open();
  const Handle file = look_up(look_up(fs->root(), "directory"), "file");
  posix::ObjectCache::drop_all();
  auto hidden = testing::SmallDisk::on(root() / "directory", 1 << 20);
  EXPECT_FALSE(is_found(file));
  look_up_new_files(100);
  hidden = nullptr;
  EXPECT_EQ(rows(), 102);
  EXPECT_TRUE(is_found(file));
}

}  // namespace
}  // namespace stag::vfs
