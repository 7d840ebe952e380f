#include "fuse/changes.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/task_group.h"

namespace stag::fuse {
namespace {

constexpr std::uint64_t kFile = 7;

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
  Changes changes;
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

TEST(Changes, of_one_file_keep_no_other_file_waiting) {
  Changes changes;
  Changes::Change below(changes, kFile - 1), above(changes, kFile + 1);
  below.leave();
  above.leave();
  EXPECT_TRUE(Waiter(changes).ended);
}

TEST(Changes, that_are_left_later_are_waited_for_where_they_began_before) {
  Changes changes;
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

}  // namespace
}  // namespace stag::fuse
