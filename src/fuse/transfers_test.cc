#include "fuse/transfers.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/task_group.h"

namespace stag::fuse {
namespace {

Task<void> note_ended(Transfers& transfers, std::uint64_t number, bool& ended) {
  co_await transfers.ended(number);
  ended = true;
}

TEST(Transfers, those_in_progress_are_waited_for_and_later_ones_are_not) {
  Transfers transfers;
  std::optional<Transfers::Transfer> first, second, later;
  first.emplace(transfers, 7);
  second.emplace(transfers, 7);
  bool ended = false;
  TaskGroup tasks;
  tasks.add(note_ended(transfers, 7, ended));
  later.emplace(transfers, 7);
  second.reset();
  EXPECT_FALSE(ended);
  first.reset();
  EXPECT_TRUE(ended) << "a file that is read all the time would be waited for until it is closed";
}

TEST(Transfers, those_of_other_files_are_not_waited_for) {
  Transfers transfers;
  const Transfers::Transfer below(transfers, 6), above(transfers, 8);
  bool ended = false;
  TaskGroup tasks;
  tasks.add(note_ended(transfers, 7, ended));
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace stag::fuse
