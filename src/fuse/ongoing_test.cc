#include "fuse/ongoing.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/task_group.h"

namespace stag::fuse {
namespace {

Task<void> note_ended(Ongoing& operations, std::uint64_t number, bool& ended) {
  co_await operations.ended(number);
  ended = true;
}

TEST(Ongoing, waits_for_operations_in_progress_and_not_for_later_ones) {
  Ongoing operations;
  std::optional<Ongoing::Operation> first, second, later;
  first.emplace(operations, 7);
  second.emplace(operations, 7);
  bool ended = false;
  TaskGroup tasks;
  tasks.add(note_ended(operations, 7, ended));
  later.emplace(operations, 7);
  second.reset();
  EXPECT_FALSE(ended);
  first.reset();
  EXPECT_TRUE(ended) << "a file that is read all the time would be waited for until it is closed";
}

TEST(Ongoing, does_not_wait_for_operations_of_other_files) {
  Ongoing operations;
  const Ongoing::Operation below(operations, 6), above(operations, 8);
  bool ended = false;
  TaskGroup tasks;
  tasks.add(note_ended(operations, 7, ended));
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace stag::fuse
