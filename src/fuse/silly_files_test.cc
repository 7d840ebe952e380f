#include "fuse/silly_files.h"

#include <gtest/gtest.h>

#include <array>

#include "base/task_group.h"

namespace stag::fuse {
namespace {

using nfs::client::Handle;

Handle folder(char first) {
  const std::array<std::byte, 2> bytes{static_cast<std::byte>(first), std::byte{7}};
  return *Handle::from(bytes);
}

Handle file(char number) {
  return folder(number);
}

Task<void> note_removed(SillyFiles& files, Handle directory, bool& ended) {
  co_await files.removed(directory);
  ended = true;
}

Task<void> note_name_removed(SillyFiles& files, Handle file, bool& ended) {
  co_await files.name_removed(file);
  ended = true;
}

TEST(SillyFiles, a_name_keeps_an_open_file_until_its_last_close) {
  SillyFiles files;
  files.add(7, file(7), {folder('d'), ".silly"});
  ASSERT_NE(files.find(7), nullptr);
  EXPECT_EQ(files.find(7)->name, ".silly");
  EXPECT_TRUE(files.keeps_open(folder('d'), ".silly"));
  EXPECT_FALSE(files.keeps_open(folder('e'), ".silly"));
  EXPECT_FALSE(files.keeps_open(folder('d'), ".other"));
  EXPECT_EQ(files.names().size(), 1u);
  const std::optional<SillyFiles::Removal> removal = files.closed(7);
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->name().name, ".silly");
  EXPECT_FALSE(files.closed(7)) << "it would be removed twice";
  EXPECT_EQ(files.find(7), nullptr);
  EXPECT_FALSE(files.keeps_open(folder('d'), ".silly"));
  EXPECT_TRUE(files.names().empty());
}

TEST(SillyFiles, a_file_that_was_closed_is_in_its_directory_until_it_is_removed) {
  SillyFiles files;
  files.add(7, file(7), {folder('d'), ".7"});
  files.add(8, file(8), {folder('d'), ".8"});
  EXPECT_EQ(files.open_in(folder('d')), (std::vector<std::uint64_t>{7, 8}));
  {
    const std::optional<SillyFiles::Removal> removal = files.closed(7);
    EXPECT_EQ(files.open_in(folder('d')), std::vector<std::uint64_t>{8});
    EXPECT_EQ(files.directories(), (std::vector<Handle>{folder('d'), folder('d')}));
  }
  EXPECT_EQ(files.directories(), std::vector<Handle>{folder('d')});
  EXPECT_TRUE(files.open_in(folder('e')).empty());
}

TEST(SillyFiles, a_file_that_has_its_name_again_is_none) {
  SillyFiles files;
  files.add(7, file(7), {folder('d'), ".7"});
  files.forget(7);
  files.forget(7);
  EXPECT_FALSE(files.closed(7));
  EXPECT_TRUE(files.directories().empty());
}

TEST(SillyFiles, removals_in_a_directory_are_waited_for_and_nothing_else_is) {
  SillyFiles files;
  files.add(1, file(1), {folder('d'), ".1"});
  files.add(2, file(2), {folder('d'), ".2"});
  files.add(3, file(3), {folder('e'), ".3"});
  files.add(4, file(4), {folder('d'), ".open"});
  std::optional<SillyFiles::Removal> one = files.closed(1), two = files.closed(2);
  const std::optional<SillyFiles::Removal> elsewhere = files.closed(3);
  bool d = false, f = false;
  TaskGroup tasks;
  tasks.add(note_removed(files, folder('f'), f));
  EXPECT_TRUE(f);
  tasks.add(note_removed(files, folder('d'), d));
  one.reset();
  EXPECT_FALSE(d);
  two.reset();
  EXPECT_TRUE(d);
}

TEST(SillyFiles, the_removal_of_a_name_of_a_file_is_waited_for) {
  SillyFiles files;
  files.add(1, file(1), {folder('d'), ".1"});
  files.add(2, file(2), {folder('d'), ".2"});
  EXPECT_FALSE(files.being_removed(file(1)));
  std::optional<SillyFiles::Removal> one = files.closed(1);
  EXPECT_TRUE(files.being_removed(file(1)));
  EXPECT_FALSE(files.being_removed(file(2)));
  bool first = false, second = false;
  TaskGroup tasks;
  tasks.add(note_name_removed(files, file(2), second));
  EXPECT_TRUE(second);
  tasks.add(note_name_removed(files, file(1), first));
  EXPECT_FALSE(first);
  one.reset();
  EXPECT_TRUE(first);
}

}  // namespace
}  // namespace stag::fuse
