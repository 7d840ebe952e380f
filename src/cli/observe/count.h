// Counters that one thread writes and any thread reads: no locks, and no instruction that locks a
// bus. What several threads count has a counter for each of them, and is added up by the reader.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/loop.h"

namespace stag::cli {

class Count {
 public:
  // On the one thread that writes.
  void add(std::uint64_t more = 1) { set(value() + more); }
  // Of what never exceeds another count: that is added to before, and read after value_first().
  void add_last() { value_.store(value() + 1, std::memory_order_release); }
  std::uint64_t value_first() const { return value_.load(std::memory_order_acquire); }
  void set(std::uint64_t to) { value_.store(to, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Upper bounds of the buckets of a Histogram: 10 us to 10 s, three for each power of ten. What
// takes longer is in one more bucket.
inline constexpr std::array<Duration, 19> kBuckets = [] {
  std::array<Duration, 19> bounds{};
  Duration decade = std::chrono::microseconds(10);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    constexpr int kSteps[] = {1, 2, 5};
    bounds[i] = decade * kSteps[i % 3];
    if (i % 3 == 2) decade *= 10;
  }
  return bounds;
}();

inline std::size_t bucket_of(Duration time) {
  // The first bucket that a time with so many bits may be in; the right one is at most two further.
  static constexpr std::array<std::uint8_t, 65> kFirst = [] {
    std::array<std::uint8_t, 65> first{};
    for (std::size_t bits = 0; bits < first.size(); ++bits) {
      const std::uint64_t least = bits == 0 ? 0 : std::uint64_t{1} << (bits - 1);
      while (first[bits] < kBuckets.size() &&
             static_cast<std::uint64_t>(kBuckets[first[bits]].count()) < least)
        ++first[bits];
    }
    return first;
  }();
  std::size_t bucket =
      kFirst[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(time.count())))];
  while (bucket < kBuckets.size() && time > kBuckets[bucket]) ++bucket;
  return bucket;
}

// The sum of Histograms at some time.
struct HistogramSum {
  std::array<std::uint64_t, kBuckets.size() + 1> buckets{};  // not cumulative
  std::uint64_t nanoseconds = 0;

  std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const std::uint64_t each : buckets) all += each;
    return all;
  }
  // What has been added since the Histograms had `earlier`.
  void subtract(const HistogramSum& earlier) {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] -= earlier.buckets[i];
    nanoseconds -= earlier.nanoseconds;
  }
};

class Histogram {
 public:
  // `time` is not negative.
  void add(Duration time) {
    buckets_[bucket_of(time)].add();
    nanoseconds_.add(static_cast<std::uint64_t>(time.count()));
  }
  void add_to(HistogramSum& sum) const {
    for (std::size_t i = 0; i < buckets_.size(); ++i) sum.buckets[i] += buckets_[i].value();
    sum.nanoseconds += nanoseconds_.value();
  }

 private:
  std::array<Count, kBuckets.size() + 1> buckets_{};
  Count nanoseconds_;
};

}  // namespace stag::cli
