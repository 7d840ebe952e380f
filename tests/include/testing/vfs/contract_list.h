// Contract of every FileSystem, part 4: listings, large and under change, from several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

inline std::string numbered(std::string_view prefix, int number) {
  return std::string(prefix) + std::to_string(number);
}

TEST_P(VfsContract, an_empty_directory_lists_dot_and_dot_dot) {
  std::vector<std::string> names = list(make_directory(root(), "d").handle);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".", ".."}));
}

TEST_P(VfsContract, pages_of_any_size_add_up_to_the_whole) {
  const Node directory = make_directory(root(), "d");
  std::set<std::string> expected{".", ".."};
  for (int i = 0; i < 150; ++i) {
    make_file(directory.handle, numbered("file-", i));
    expected.insert(numbered("file-", i));
  }
  for (const std::size_t room : {1u, 7u, 100u, 1000u}) {
    const std::vector<std::string> names = list(directory.handle, room);
    EXPECT_EQ(names.size(), expected.size());
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expected);
  }
}

TEST_P(VfsContract, a_listing_with_nodes_names_the_objects_of_its_entries) {
  const Node directory = make_directory(root(), "d");
  const Node file = make_file(directory.handle, "file");
  good(fs().symlink(as(root_user), directory.handle, "link", "file", {}));
  ListFrom from;
  from.with_nodes = true;
  Names names;
  EXPECT_TRUE(good(fs().list(as(root_user), directory.handle, from, names)).eof);
  ASSERT_EQ(names.nodes.size(), 4u);
  EXPECT_EQ(names.nodes["file"].handle, file.handle);
  EXPECT_EQ(names.nodes["file"].attributes.file_id, file.attributes.file_id);
  EXPECT_EQ(names.nodes["link"].attributes.type, FileType::Symlink);
  EXPECT_EQ(names.nodes["."].handle, directory.handle);
  EXPECT_EQ(names.nodes[".."].handle, root());
  Names of_root;
  good(fs().list(as(root_user), root(), from, of_root));
  EXPECT_EQ(of_root.nodes[".."].handle, root()) << "nothing above the export is named";
}

TEST_P(VfsContract, a_budget_bounds_what_is_prepared_but_never_stops_progress) {
  const Node directory = make_directory(root(), "d");
  for (int i = 0; i < 50; ++i) make_file(directory.handle, numbered("file-", i));
  ListFrom from;
  from.budget = 1;
  std::size_t entries = 0;
  while (true) {
    Names names;
    const Listed listed = good(fs().list(as(root_user), directory.handle, from, names));
    entries += names.names.size();
    if (listed.eof) break;
    ASSERT_FALSE(names.names.empty());
    ASSERT_LE(names.names.size(), 3u);
    from.cookie = names.cookie;
    from.verifier = listed.verifier;
  }
  EXPECT_EQ(entries, 52u);
}

TEST_P(VfsContract, a_verifier_of_another_listing_is_a_bad_cookie) {
  const Node directory = make_directory(root(), "d");
  ListFrom from;
  Names names(1);
  const Listed listed = good(fs().list(as(root_user), directory.handle, from, names));
  from.cookie = names.cookie;
  from.verifier = listed.verifier;
  (*from.verifier)[3] ^= std::byte{1};
  EXPECT_EQ(status(fs().list(as(root_user), directory.handle, from, names)), Status::BadCookie);
  from.verifier.reset();
  Names rest;
  EXPECT_TRUE(good(fs().list(as(root_user), directory.handle, from, rest)).eof);
}

TEST_P(VfsContract, a_listing_goes_on_after_any_entry_of_it) {
  const Node directory = make_directory(root(), "d");
  for (int i = 0; i < 20; ++i) make_file(directory.handle, numbered("file-", i));
  const std::vector<std::string> all = list(directory.handle);
  ListFrom from;
  std::set<std::uint64_t> cookies{0};
  for (std::size_t at = 0; at < all.size(); ++at) {
    Names one(1);
    const Listed listed = good(fs().list(as(root_user), directory.handle, from, one));
    ASSERT_EQ(one.names, std::vector<std::string>{all[at]});
    EXPECT_TRUE(cookies.insert(one.cookie).second) << "0 is the start, and each is another";
    EXPECT_EQ(listed.directory.file_id, directory.attributes.file_id);
    from.cookie = one.cookie;
    from.verifier = listed.verifier;
    if (at == all.size() / 2 && properties().survives_restart) backend().restart();
  }
  Names none;
  EXPECT_TRUE(good(fs().list(as(root_user), directory.handle, from, none)).eof);
  EXPECT_TRUE(none.names.empty());
}

TEST_P(VfsContract, an_entry_that_the_sink_did_not_take_is_not_the_end) {
  const Node directory = make_directory(root(), "d");
  for (const std::size_t room : {0u, 1u, 2u}) {
    Names some(room);
    EXPECT_EQ(good(fs().list(as(root_user), directory.handle, {}, some)).eof, room == 2) << room;
  }
}

// Positions of most file systems cannot be told from made-up ones.
TEST_P(VfsContract, a_cookie_that_nobody_gave_is_refused_or_lists_what_is_there_once) {
  const Node directory = make_directory(root(), "d");
  for (int i = 0; i < 20; ++i) make_file(directory.handle, numbered("file-", i));
  for (const std::uint64_t cookie :
       {std::uint64_t{12345}, std::uint64_t{1} << 31, std::uint64_t{1} << 62,
        std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    ListFrom from;
    from.cookie = cookie;
    Names names;
    const auto answer = status(fs().list(as(root_user), directory.handle, from, names));
    EXPECT_TRUE(!answer || answer == Status::BadCookie) << cookie;
    const std::set<std::string> once(names.names.begin(), names.names.end());
    EXPECT_EQ(once.size(), names.names.size()) << cookie;
  }
}

TEST_P(VfsContract, entries_removed_between_pages_do_not_hide_others) {
  const Node directory = make_directory(root(), "d");
  for (int i = 0; i < 200; ++i) make_file(directory.handle, numbered("file-", i));
  std::set<std::string> removed;
  const std::vector<std::string> names = list(directory.handle, 10, [&](std::size_t page) {
    const std::string victim = numbered("file-", static_cast<int>(page) * 7 % 200);
    if (!removed.insert(victim).second) return;
    good(fs().remove(as(root_user), directory.handle, victim));
  });
  for (int i = 0; i < 200; ++i) {
    const std::string name = numbered("file-", i);
    if (removed.contains(name)) continue;
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

TEST_P(VfsContract, a_large_directory_lists_completely_while_others_change_it) {
  const Node directory = make_directory(root(), "big");
  const int entries = properties().large_directory;
  if (!backend().fill("big", "stays-", entries)) {
    for (int i = 0; i < entries; ++i) make_file(directory.handle, numbered("stays-", i));
  }
  std::atomic<bool> listing = true;
  std::atomic<int> changes = 0;
  std::thread changer([&] {
    InlineLoop loop;
    const CallerContext caller{loop, root_user};
    for (int i = 0; listing || i < 100; ++i) {
      const std::string name = numbered("comes-and-goes-", i % 500);
      CreateHow how;
      if (finish(loop, fs().create(caller, directory.handle, name, how))) ++changes;
      if (i % 3 != 0 && finish(loop, fs().remove(caller, directory.handle, name))) ++changes;
    }
  });
  const std::vector<std::string> names = list(directory.handle, 900);
  listing = false;
  changer.join();
  EXPECT_GT(changes, 0);
  std::vector<int> seen(static_cast<std::size_t>(entries));
  for (const std::string& name : names)
    if (name.starts_with("stays-")) ++seen[static_cast<std::size_t>(std::stoi(name.substr(6)))];
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), entries);
}

TEST_P(VfsContract, several_threads_make_move_and_remove_in_the_same_directories) {
  const Node left = make_directory(root(), "left");
  const Node right = make_directory(root(), "right");
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      InlineLoop loop;
      const CallerContext caller{loop, root_user};
      const std::string mine = numbered("mine-", t);
      for (int i = 0; i < kRounds; ++i) {
        const auto made = finish(loop, fs().create(caller, left.handle, mine, {}));
        ASSERT_TRUE(made.ok());
        ASSERT_TRUE(finish(loop, fs().rename(caller, left.handle, mine, right.handle, mine)).ok());
        // The prize belongs to whoever comes last; every step may lose, none may break.
        (void)finish(loop, fs().rename(caller, right.handle, mine, left.handle, "prize"));
        (void)finish(loop, fs().rename(caller, left.handle, "prize", right.handle, "prize"));
        (void)finish(loop, fs().mkdir(caller, left.handle, "directory", {}));
        (void)finish(loop,
                     fs().rename(caller, left.handle, "directory", right.handle, "directory"));
        (void)finish(loop, fs().rmdir(caller, right.handle, "directory"));
        ASSERT_TRUE(finish(loop, fs().attributes(caller, left.handle)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t directories = 0;
  for (const Handle& side : {left.handle, right.handle}) {
    for (const std::string& name : list(side)) {
      if (name == "." || name == "..") continue;
      if (find(side, name).attributes.type == FileType::Directory) ++directories;
    }
  }
  EXPECT_EQ(attributes(left.handle).links + attributes(right.handle).links, 4 + directories);
}

}  // namespace stag::vfs::testing
