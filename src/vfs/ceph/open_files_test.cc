#include "vfs/ceph/open_files.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

namespace stag::vfs::ceph {
namespace {

// What the library is asked for, and answers.
struct Library {
  int open = 0;  // files
  int opened = 0;
  int syncs = 0;
  int sync_result = 0;
  std::function<void()> on_sync{};
  std::function<void()> on_close{};
};
Library* library = nullptr;

std::shared_ptr<const Functions> functions() {
  auto table = std::make_shared<Functions>();
  table->open = [](ceph_mount_info*, Inode*, int, Fh** file, const UserPerm*) {
    ++library->open;
    *file = reinterpret_cast<Fh*>(static_cast<std::uintptr_t>(++library->opened));
    return 0;
  };
  table->fsync = [](ceph_mount_info*, Fh*, int) {
    ++library->syncs;
    if (library->on_sync) library->on_sync();
    return library->sync_result;
  };
  table->close = [](ceph_mount_info*, Fh*) {
    --library->open;
    if (library->on_close) library->on_close();
    return 0;
  };
  return table;
}

Handle handle_of(char name) {
  return *Handle::from(bytes_of(std::string_view(&name, 1)));
}

class CephOpenFiles : public ::testing::Test {
 protected:
  CephOpenFiles() { library = &library_; }

  OpenFileRef open(char name) {
    auto opened = files_.open(handle_of(name), nullptr);
    return opened ? *std::move(opened) : nullptr;
  }
  // As Tree::commit() does.
  void commit(char name) {
    auto file = files_.find(handle_of(name));
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->sync(true), 0);
    files_.close_idle(handle_of(name), std::move(file));
  }
  bool found(char name) { return files_.find(handle_of(name)) != nullptr; }
  void write(char name) { open(name)->note_written(); }

  static constexpr std::size_t kCapacity = 2;
  Library library_;
  const Mount mount_{functions()};
  std::atomic<std::uint64_t> losses_{0};
  OpenFiles files_{mount_, 0, kCapacity, losses_};
};

TEST_F(CephOpenFiles, close_a_file_when_it_is_committed) {
  write('a');
  commit('a');
  EXPECT_FALSE(found('a'));
  EXPECT_EQ(library_.open, 0);
  EXPECT_EQ(library_.syncs, 1);
}

TEST_F(CephOpenFiles, find_what_is_written_while_a_commit_ends) {
  auto first = open('a');
  auto second = open('a');
  commit('a');
  first->note_written();
  first.reset();
  EXPECT_TRUE(found('a'));
  second.reset();
  commit('a');
  EXPECT_EQ(library_.syncs, 2);
  EXPECT_EQ(library_.open, 0);
}

TEST_F(CephOpenFiles, find_a_file_that_has_to_go_until_it_is_synced) {
  bool there = false;
  library_.on_sync = [&] { there = found('a'); };
  for (const char name : {'a', 'b', 'c'}) write(name);
  library_.on_sync = nullptr;
  EXPECT_TRUE(there);
  EXPECT_FALSE(found('a'));
  EXPECT_EQ(library_.open, 2);
}

TEST_F(CephOpenFiles, keep_a_file_that_is_written_again_while_it_has_to_go) {
  library_.on_sync = [&] { write('a'); };
  for (const char name : {'a', 'b', 'c'}) write(name);
  EXPECT_TRUE(found('a'));
  EXPECT_FALSE(found('b'));
  EXPECT_EQ(library_.syncs, 2);
  library_.on_sync = nullptr;
}

TEST_F(CephOpenFiles, count_a_loss_before_the_file_is_no_longer_found) {
  library_.sync_result = -EIO;
  std::uint64_t counted = 0;
  library_.on_close = [&] { counted = losses_.load(); };
  for (const char name : {'a', 'b', 'c'}) write(name);
  EXPECT_EQ(counted, 1u);
  library_.on_close = nullptr;
}

TEST_F(CephOpenFiles, take_no_file_from_who_uses_it) {
  const auto a = open('a');
  const auto b = open('b');
  const auto c = open('c');
  EXPECT_TRUE(found('a') && found('b') && found('c'));
  EXPECT_EQ(library_.open, 3);
}

TEST_F(CephOpenFiles, close_what_nobody_has_used_for_a_while) {
  const auto used = open('a');
  open('b');
  files_.close_unused();
  EXPECT_TRUE(found('b'));
  files_.close_unused();
  EXPECT_EQ(library_.open, 2) << "it was used since the last time but one";
  files_.close_unused();
  EXPECT_FALSE(found('b'));
  EXPECT_EQ(library_.open, 1);
  EXPECT_TRUE(found('a')) << "somebody uses it";
}

TEST_F(CephOpenFiles, keep_what_is_not_synced_and_close_it_some_time_after) {
  write('a');
  for (int i = 0; i < 3; ++i) files_.close_unused();
  EXPECT_TRUE(found('a'));
  EXPECT_EQ(files_.find(handle_of('a'))->sync(true), 0);
  for (int i = 0; i < 2; ++i) files_.close_unused();
  EXPECT_FALSE(found('a'));
}

TEST_F(CephOpenFiles, are_used_while_others_are_closed) {
  open('a');
  bool there = false;
  library_.on_close = [&] { there = open('b') != nullptr; };
  for (int i = 0; i < 2; ++i) files_.close_unused();
  library_.on_close = nullptr;
  EXPECT_TRUE(there);
}

TEST_F(CephOpenFiles, forget_a_file_and_close_it_after_its_last_use) {
  auto used = open('a');
  files_.forget(handle_of('a'));
  EXPECT_FALSE(found('a'));
  EXPECT_EQ(library_.open, 1);
  used.reset();
  EXPECT_EQ(library_.open, 0);
}

TEST_F(CephOpenFiles, sync_what_was_written_to_a_file_that_is_forgotten_and_count_its_loss) {
  auto used = open('a');
  used->note_written();
  files_.forget(handle_of('a'));
  library_.sync_result = -EIO;
  used.reset();
  EXPECT_EQ(library_.syncs, 1);
  EXPECT_EQ(losses_.load(), 1u);
  EXPECT_EQ(library_.open, 0);
}

}  // namespace
}  // namespace stag::vfs::ceph
