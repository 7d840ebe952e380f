#include "fuse/changes.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "base/task_group.h"

namespace stag::fuse {
namespace {

constexpr std::uint64_t kFile = 7;

nfs::client::Handle file_named(char name) {
  return *nfs::client::Handle::from(std::array{static_cast<std::byte>(name)});
}

Task<void> note_ended(Changes& changes, std::uint64_t number, bool& ended) {
  co_await changes.left_ended(number);
  ended = true;
}

struct Waiter {
  explicit Waiter(Changes& changes, std::uint64_t number = kFile) {
    tasks.add(note_ended(changes, number, ended));
  }
  bool ended = false;
  TaskGroup tasks;
};

TEST(Changes, are_waited_for_only_where_nobody_waits_for_them_any_more) {
  Inodes inodes(file_named('r'));
  Changes changes(inodes);
  std::optional<Changes::Change> left, other;
  left.emplace(changes, kFile);
  other.emplace(changes, kFile);
  EXPECT_TRUE(Waiter(changes).ended);
  left->leave();
  left->leave();
  const Waiter waiter(changes);
  EXPECT_FALSE(waiter.ended);
  left.reset();
  EXPECT_TRUE(waiter.ended) << "the other one goes on beside it";
  EXPECT_TRUE(Waiter(changes).ended);
}

TEST(Changes, keep_no_other_file_waiting) {
  Inodes inodes(file_named('r'));
  Changes changes(inodes);
  Changes::Change below(changes, kFile - 1), above(changes, kFile + 1);
  below.leave();
  above.leave();
  EXPECT_TRUE(Waiter(changes).ended);
}

TEST(Changes, that_are_left_later_are_waited_for_where_they_began_before) {
  Inodes inodes(file_named('r'));
  Changes changes(inodes);
  std::optional<Changes::Change> first, second, later;
  first.emplace(changes, kFile);
  second.emplace(changes, kFile);
  first->leave();
  const Waiter waiter(changes);
  later.emplace(changes, kFile);
  later->leave();
  second->leave();
  first.reset();
  EXPECT_FALSE(waiter.ended) << "of the second";
  second.reset();
  EXPECT_TRUE(waiter.ended) << "whatever began behind it";
}

TEST(Changes, keep_the_number_of_a_file_that_the_kernel_forgets) {
  Inodes inodes(file_named('r'));
  Changes changes(inodes);
  const std::uint64_t number = inodes.enter(file_named('a'));
  std::optional<Changes::Change> left;
  left.emplace(changes, number);
  left->leave();
  inodes.forget(number, 1);
  EXPECT_EQ(inodes.enter(file_named('a')), number);
  const Waiter waiter(changes, number);
  EXPECT_FALSE(waiter.ended);
  inodes.forget(number, 1);
  left.reset();
  EXPECT_TRUE(waiter.ended);
  EXPECT_EQ(inodes.number_of(file_named('a')), 0u);
}

}  // namespace
}  // namespace stag::fuse
