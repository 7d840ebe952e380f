#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "vfs/posix/object.h"

namespace stag::vfs::posix {
namespace {

TEST(ChangeWatch, knows_those_alone_between_whose_begin_and_end_nothing_has_begun_or_gone_on) {
  ChangeWatch watch;
  const auto first = watch.begin();
  EXPECT_TRUE(watch.end(first));
  const auto outer = watch.begin(), inner = watch.begin();
  EXPECT_FALSE(watch.end(inner));
  EXPECT_FALSE(watch.end(outer));
  EXPECT_TRUE(watch.end(watch.begin()));
}

// Each counts what it has changed within its begin() and end(): who was alone has seen one change.
TEST(ChangeWatch, takes_no_change_of_another_thread_for_its_own) {
  ChangeWatch watch;
  std::atomic<int> changes = 0;
  std::atomic<int> wrong = 0;
  const auto change = [&] {
    for (int i = 0; i < 500'000; ++i) {
      const auto ticket = watch.begin();
      const int before = changes.load();
      ++changes;
      const int after = changes.load();
      if (watch.end(ticket) && after != before + 1) ++wrong;
    }
  };
  std::thread other(change);
  change();
  other.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace stag::vfs::posix
