#include "fuse/open_files.h"

#include <gtest/gtest.h>

namespace stag::fuse {
namespace {

using Owners = std::vector<std::uint64_t>;

constexpr std::uint64_t kInode = 7, kOther = 8;
constexpr OpenFiles::LockOwner kProcess{0, 1}, kOpen{0, 2};

Owners owners(OpenFiles::Node closed) {
  Owners numbers;
  if (!closed) return numbers;
  for (const OpenFiles::LockOwner& owner : closed.mapped().open.lock_owners)
    numbers.push_back(owner.number);
  return numbers;
}

struct OpenFile : ::testing::Test {
  OpenFiles files;
  std::uint64_t first = files.add(kInode, {{}});
  std::uint64_t second = files.add(kInode, {{}});
};

TEST_F(OpenFile, ends_with_those_who_may_have_locks_by_it) {
  for (const OpenFiles::LockOwner& owner : {kProcess, kOpen, kProcess})
    files.on_lock(kInode, first, owner);
  EXPECT_EQ(owners(files.remove(kInode, first)), (Owners{1, 2}));
  EXPECT_EQ(owners(files.remove(kInode, second)), Owners());
}

TEST_F(OpenFile, has_no_locks_of_an_owner_that_unlocked_the_file) {
  const std::uint64_t other = files.add(kOther, {{}});
  for (const std::uint64_t open : {first, second}) files.on_lock(kInode, open, kProcess);
  files.on_lock(kInode, second, kOpen);
  files.on_lock(kOther, other, kProcess);
  files.on_unlock(kInode, kProcess);
  EXPECT_EQ(owners(files.remove(kInode, first)), Owners());
  EXPECT_EQ(owners(files.remove(kInode, second)), Owners{2});
  EXPECT_EQ(owners(files.remove(kOther, other)), Owners{1});
}

TEST_F(OpenFile, is_found_for_writing_until_it_is_closed) {
  EXPECT_EQ(files.find_writing(kInode), nullptr);
  files.add(kOther, {.file = {}, .writes = true});
  EXPECT_EQ(files.find_writing(kInode), nullptr);
  const std::uint64_t writing = files.add(kInode, {.file = {}, .writes = true});
  EXPECT_EQ(files.find_writing(kInode), files.find(kInode, writing));
  files.remove(kInode, writing);
  EXPECT_EQ(files.find_writing(kInode), nullptr);
}

TEST_F(OpenFile, is_cached_unless_the_kernel_was_told_otherwise) {
  EXPECT_TRUE(files.is_any_cached(kInode));
  EXPECT_FALSE(files.is_any_cached(kOther));
  files.add(kOther, {.file = {}, .direct = true});
  EXPECT_FALSE(files.is_any_cached(kOther));
  files.add(kOther, {{}});
  EXPECT_TRUE(files.is_any_cached(kOther));
}

TEST_F(OpenFile, may_have_changed_pages_where_it_can_be_mapped_for_writing) {
  files.add(kInode, {.file = {}, .writes = true, .reads = false});
  files.add(kInode, {.file = {}, .direct = true, .writes = true});
  files.add(kOther, {.file = {}, .writes = true});
  EXPECT_FALSE(files.may_have_changed_pages(kInode));
  const std::uint64_t mapped = files.add(kInode, {.file = {}, .writes = true});
  EXPECT_TRUE(files.may_have_changed_pages(kInode));
  EXPECT_EQ(files.with_changed_pages(), (std::vector<std::uint64_t>{kInode, kOther}));
  files.remove(kInode, mapped);
  EXPECT_FALSE(files.may_have_changed_pages(kInode));
  EXPECT_EQ(files.with_changed_pages(), std::vector<std::uint64_t>{kOther});
}

TEST_F(OpenFile, gets_no_locks_when_it_has_ended) {
  files.remove(kInode, first);
  files.on_lock(kInode, first, kOpen);
  EXPECT_EQ(owners(files.remove(kInode, first)), Owners());
  EXPECT_EQ(files.find(kInode, first), nullptr);
}

}  // namespace
}  // namespace stag::fuse
