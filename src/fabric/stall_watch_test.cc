#include "fabric/stall_watch.h"

#include <gtest/gtest.h>

namespace stag::fabric {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{};

// A peer that takes `rate` bytes a second of `due`, looked at every half limit, until it has all or
// is found to stand still; for a day at most.
struct Outcome {
  bool stalled = false;
  Duration at{};
};
Outcome of_peer_that_takes(std::uint64_t rate, std::uint64_t due) {
  StallWatch watch(60s);
  for (Duration at = 0s; at <= 24h; at += 30s) {
    const std::uint64_t taken =
        std::min<std::uint64_t>(due, rate * static_cast<std::uint64_t>(at / 1s));
    if (watch.is_stalled(kStart + at, {due, taken, taken})) return {true, at};
    if (taken == due) return {false, at};
  }
  return {false, 24h};
}

// 64 READs of 1 MiB over 5 Mbit/s take 107 s.
TEST(StallWatch, lets_a_slow_peer_take_all_of_much) {
  const Outcome outcome = of_peer_that_takes(625'000, 64 << 20);
  EXPECT_FALSE(outcome.stalled);
  EXPECT_EQ(outcome.at, 120s);
}

TEST(StallWatch, finds_a_peer_that_takes_nothing_after_the_limit) {
  const Outcome outcome = of_peer_that_takes(0, 1 << 20);
  EXPECT_TRUE(outcome.stalled);
  EXPECT_EQ(outcome.at, 60s);
}

TEST(StallWatch, takes_less_than_the_least_rate_for_standing_still) {
  EXPECT_TRUE(of_peer_that_takes(1, 64 << 20).stalled);
  EXPECT_TRUE(of_peer_that_takes(StallWatch::kLeastRate - 1, 64 << 20).stalled);
  EXPECT_FALSE(of_peer_that_takes(StallWatch::kLeastRate, 64 << 20).stalled);
}

TEST(StallWatch, finds_a_peer_that_stops_after_a_good_beginning) {
  StallWatch watch(60s);
  EXPECT_FALSE(watch.is_stalled(kStart, {1 << 20, 0, 0}));
  EXPECT_FALSE(watch.is_stalled(kStart + 30s, {1 << 20, 1 << 19, 1 << 19}));
  EXPECT_FALSE(watch.is_stalled(kStart + 60s, {1 << 20, 1 << 19, 1 << 19}));
  EXPECT_TRUE(watch.is_stalled(kStart + 90s, {1 << 20, 1 << 19, 1 << 19}));
}

// Small items one after the other: there is one under way whenever it looks.
TEST(StallWatch, does_not_take_one_small_item_for_the_next) {
  StallWatch watch(60s);
  for (std::uint64_t i = 1; i < 100; ++i)
    EXPECT_FALSE(watch.is_stalled(kStart + i * 30s, {i, i - 1, 0}));
}

TEST(StallWatch, forgets_what_is_settled) {
  StallWatch watch(60s);
  EXPECT_FALSE(watch.is_stalled(kStart, {100, 0, 0}));
  EXPECT_FALSE(watch.is_stalled(kStart + 30s, {100, 100, 100}));
  EXPECT_FALSE(watch.is_stalled(kStart + 1h, {200, 100, 100})) << "this is due only now";
  EXPECT_FALSE(watch.is_stalled(kStart + 1h + 59s, {300, 100, 100}));
  EXPECT_TRUE(watch.is_stalled(kStart + 1h + 60s, {300, 100, 100}));
}

// What is due grows, the first of it stays.
TEST(StallWatch, is_not_deceived_by_new_debts) {
  StallWatch watch(60s);
  EXPECT_FALSE(watch.is_stalled(kStart, {1, 0, 0}));
  EXPECT_FALSE(watch.is_stalled(kStart + 30s, {2, 0, 0}));
  EXPECT_TRUE(watch.is_stalled(kStart + 60s, {3, 0, 0}));
}

TEST(StallWatch, needs_a_byte_at_least_however_short_the_limit) {
  StallWatch watch(1ms);
  EXPECT_FALSE(watch.is_stalled(kStart, {10, 0, 0}));
  EXPECT_FALSE(watch.is_stalled(kStart + 1ms, {10, 1, 1}));
  EXPECT_TRUE(watch.is_stalled(kStart + 2ms, {10, 1, 1}));
}

}  // namespace
}  // namespace stag::fabric
