#include "bench/load/histogram.h"

#include <gtest/gtest.h>

namespace stag::bench {
namespace {

TEST(Histogram, is_zero_without_samples) {
  const Histogram none;
  EXPECT_EQ(none.percentile(0.5), 0u);
  EXPECT_EQ(none.max(), 0u);
}

TEST(Histogram, knows_small_values_exactly) {
  Histogram small;
  for (std::uint64_t value = 1; value <= 50; ++value) small.add(value);
  EXPECT_EQ(small.percentile(0.5), 25u);
  EXPECT_EQ(small.percentile(0.02), 1u);
  EXPECT_EQ(small.percentile(1), 50u);
}

TEST(Histogram, knows_every_value_within_a_thirtysecond) {
  for (std::uint64_t value = 1; value < (std::uint64_t{1} << 40); value = value * 5 / 3 + 1) {
    Histogram one;
    one.add(value);
    one.add(std::uint64_t{1} << 40);  // so that max() does not help
    EXPECT_GE(one.percentile(0.5), value);
    EXPECT_LE(one.percentile(0.5), value + value / 32);
  }
}

TEST(Histogram, takes_what_is_too_long_and_tells_its_length) {
  Histogram long_ones;
  long_ones.add(~std::uint64_t{0});
  EXPECT_EQ(long_ones.count(), 1u);
  EXPECT_EQ(long_ones.max(), ~std::uint64_t{0});
  EXPECT_GE(long_ones.percentile(0.5), (std::uint64_t{1} << 41) - 1);
}

TEST(Histogram, adds_another_one) {
  Histogram fast, slow;
  for (int i = 0; i < 98; ++i) fast.add(10);
  slow.add(1000);
  slow.add(20);
  fast.add(slow);
  EXPECT_EQ(fast.count(), 100u);
  EXPECT_EQ(fast.percentile(0.98), 10u);
  EXPECT_EQ(fast.percentile(0.99), 20u);
  EXPECT_EQ(fast.percentile(0.999), 1000u);
}

}  // namespace
}  // namespace stag::bench
