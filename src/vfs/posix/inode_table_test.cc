#include "vfs/posix/inode_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/reason.h"
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

void write(const std::filesystem::path& path, std::size_t from, std::size_t count) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(from));
  for (std::size_t i = 0; i < count; ++i) file.put('x');
  STAG_CHECK(file.good());
}

TEST(InodeTable, that_is_damaged_is_set_aside_for_an_empty_one) {
  // From the first byte on, and behind SQLite's own header.
  for (const std::size_t from : {0u, 100u}) {
    const vfs::testing::Folder folder("/tmp");
    const std::filesystem::path path = folder.path() / "names.db";
    const InodeKey root{2, 1};
    ASSERT_TRUE(InodeTable::open(path).ok());
    write(path, from, 40'000);
    const std::uint64_t told = reason_counters().of(Reason::InodeTableSetAside);
    for (const bool again : {false, true}) {
      const auto table = InodeTable::open(path);
      ASSERT_TRUE(table.ok()) << table.error();
      EXPECT_EQ((*table)->names_of({10, 20})->size(), again ? 1u : 0u);
      (*table)->record(root, "name", {10, 20});
      EXPECT_EQ(reason_counters().of(Reason::InodeTableSetAside) - told, 1u);
    }
    EXPECT_EQ(std::filesystem::file_size(folder.path() / "names.db.damaged"), from + 40'000);
  }
}

TEST(InodeTable, that_cannot_be_read_is_not_taken_for_one_without_the_names) {
  const vfs::testing::Folder folder("/tmp");
  const std::filesystem::path path = folder.path() / "names.db";
  const auto table = InodeTable::open(path);
  ASSERT_TRUE(table.ok());
  (*table)->record({2, 1}, "name", {10, 20});
  ASSERT_TRUE((*table)->names_of({10, 20}) && (*table)->rows_behind(InodeTable::before_all(), 9));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(other, "DROP TABLE names", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_FALSE((*table)->names_of({10, 20}));
  EXPECT_FALSE((*table)->rows_behind(InodeTable::before_all(), 9));
}

// A killed server leaves changes behind that belong to the damaged one.
TEST(InodeTable, that_is_damaged_leaves_nothing_to_the_next_one) {
  const vfs::testing::Folder folder("/tmp");
  const std::filesystem::path path = folder.path() / "names.db";
  const InodeKey root{2, 1};
  (*InodeTable::open(path))->record(root, "written", {10, 20});
  const auto killed = InodeTable::open(path);
  ASSERT_TRUE(killed.ok());
  (*killed)->record(root, "in the log", {11, 20});
  const vfs::testing::Folder copy("/tmp");
  const std::filesystem::path copied = copy.path() / "names.db";
  for (const char* const each : {"", "-wal"})
    std::filesystem::copy_file(path.string() + each, copied.string() + each);
  write(copied, 0, 40'000);
  const auto table = InodeTable::open(copied);
  ASSERT_TRUE(table.ok()) << table.error();
  for (const InodeKey object : {InodeKey{10, 20}, InodeKey{11, 20}})
    EXPECT_TRUE((*table)->names_of(object)->empty());
}

TEST(InodeTable, that_cannot_be_opened_stays_where_it_is) {
  const vfs::testing::Folder folder("/tmp");
  const auto table = InodeTable::open(folder.path());
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error(), folder.path().string() + ": unable to open database file");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path()));
}

TEST(InodeTable, keeps_the_names_that_were_retired_last) {
  const vfs::testing::Folder folder("/tmp");
  const auto table = InodeTable::open(folder.path() / "names.db");
  ASSERT_TRUE(table.ok());
  std::vector<InodeTable::Row> rows;
  for (std::uint64_t i = 1; i <= InodeTable::kMostRetired + 2; ++i)
    rows.push_back({{2, 1}, std::to_string(i), {i, 1}});
  for (const std::uint64_t i : {1, 2, 3})
    (*table)->record({2, 1}, rows[i - 1].name, rows[i - 1].object);
  EXPECT_EQ((*table)->rows_behind(InodeTable::before_all(), 10)->size(), 3u);
  (*table)->retire(rows);
  EXPECT_TRUE((*table)->rows_behind(InodeTable::before_all(), 10)->empty());
  EXPECT_TRUE((*table)->names_of({2, 1})->empty());
  EXPECT_EQ((*table)->names_of({3, 1})->size(), 1u);
}

TEST(InodeTable, shows_its_rows_in_steps) {
  const vfs::testing::Folder folder("/tmp");
  const auto table = InodeTable::open(folder.path() / "names.db");
  ASSERT_TRUE(table.ok());
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  std::set<std::string> names;
  for (const std::uint64_t directory : {std::uint64_t{0}, std::uint64_t{2}, kHuge})
    for (const std::string name : {"a", "b", "c"}) {
      (*table)->record({directory, 1}, name, {directory, 2});
      names.insert(name + std::to_string(directory));
    }
  InodeTable::Row last = InodeTable::before_all();
  for (int step = 0; step < 5; ++step) {
    const auto rows = (*table)->rows_behind(last, 2);
    ASSERT_TRUE(rows);
    for (const InodeTable::Row& row : *rows) {
      EXPECT_EQ(names.erase(row.name + std::to_string(row.directory.inode)), 1u);
      EXPECT_EQ(row.object, (InodeKey{row.directory.inode, 2}));
      last = row;
    }
  }
  EXPECT_TRUE(names.empty());
  EXPECT_TRUE((*table)->rows_behind(last, 2)->empty());
}

// The keys of objects are looked at whenever a name is followed: no handle leads to another file.
TEST(InodeTable, that_is_damaged_makes_handles_stale_until_names_are_looked_up) {
  const vfs::testing::Folder folder("/tmp");
  PosixFileSystem::Options options{.root = folder.path() / "export",
                                   .state_directory = folder.path() / "state",
                                   .handles = posix::HandleKind::Table};
  std::filesystem::create_directory(options.root);
  std::filesystem::create_directory(options.state_directory);
  std::ofstream(options.root + "/file") << "text";
  vfs::testing::InlineLoop loop;
  const Credentials root{0, 0, {}};
  const CallerContext caller{loop, root};
  const auto look_up = [&](FileSystem& fs) {
    return vfs::testing::finish(loop, fs.lookup(caller, fs.root(), "file"))->node.handle;
  };
  const Handle handle = look_up(**PosixFileSystem::open(options));
  for (const auto& entry : std::filesystem::directory_iterator(options.state_directory))
    if (entry.path().extension() == ".sqlite") write(entry.path(), 0, 40'000);
  const auto fs = PosixFileSystem::open(options);
  ASSERT_TRUE(fs.ok()) << fs.error();
  const auto attributes = [&] {
    return vfs::testing::finish(loop, (*fs)->attributes(caller, handle));
  };
  EXPECT_EQ(attributes().error(), Status::Stale);
  EXPECT_EQ(look_up(**fs), handle);
  EXPECT_TRUE(attributes().ok());
}

}  // namespace
}  // namespace stag::vfs::posix
