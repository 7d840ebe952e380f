#include "base/cancel.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace stag {
namespace {

TEST(Cancel, runs_each_callback_once) {
  CancelSource source;
  int calls = 0;
  CancelCallback first(source, [&] { ++calls; });
  CancelCallback second(source, [&] { ++calls; });
  {
    CancelCallback gone(source, [&] { calls += 100; });
  }
  source.cancel();
  source.cancel();
  EXPECT_EQ(calls, 2);
}

TEST(Cancel, runs_a_callback_that_comes_too_late_at_once) {
  CancelSource source;
  source.cancel();
  int calls = 0;
  CancelCallback late(source, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Cancel, a_callback_may_destroy_other_hooks) {
  CancelSource source;
  int calls = 0;
  std::optional<CancelCallback> first, second;
  first.emplace(source, [&] { ++calls, second.reset(); });
  second.emplace(source, [&] { ++calls, first.reset(); });
  source.cancel();
  EXPECT_EQ(calls, 1);
}

// A coroutine that is resumed by its cancelling ends, and a new one may take the place of its frame
// before cancel() returns.
TEST(Cancel, a_callback_may_destroy_the_source_and_make_a_new_one_in_its_place) {
  std::optional<CancelSource> source(std::in_place);
  std::optional<CancelCallback> next;
  bool next_cancelled = false;
  CancelCallback hook(*source, [&] {
    source.reset();
    source.emplace();
    next.emplace(*source, [&] { next_cancelled = true; });
  });
  source->cancel();
  EXPECT_FALSE(next_cancelled);
  EXPECT_FALSE(source->cancelled());
}

}  // namespace
}  // namespace stag
