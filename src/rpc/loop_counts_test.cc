#include "rpc/loop_counts.h"

#include <gtest/gtest.h>

#include <optional>

#include "testing/manual_loop.h"

namespace stag::rpc {
namespace {

TEST(LoopCounts, are_kept_for_each_loop) {
  testing::ManualLoop one, two;
  LoopCounts counts;
  counts.place(&one) = 3;
  counts.place(&two) = 4;
  counts.place(&one) += 1;
  EXPECT_EQ(counts.of(one), 4u);
  EXPECT_EQ(counts.of(two), 4u);
  EXPECT_EQ(counts.sum(), 8u);
  EXPECT_EQ(counts.of(testing::ManualLoop()), 0u);
}

TEST(LoopCounts, are_not_those_of_an_earlier_object_at_the_same_place) {
  testing::ManualLoop loop;
  std::optional<LoopCounts> counts(std::in_place);
  counts->place(&loop) = 1;
  counts.emplace();
  EXPECT_EQ(counts->of(loop), 0u);
  counts->place(&loop) = 2;
  EXPECT_EQ(counts->sum(), 2u);
}

}  // namespace
}  // namespace stag::rpc
