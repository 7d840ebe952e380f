// How long operations took: counts of durations, log-linear, so that the memory is the same however
// many there are and each is known within 3 %.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stag::bench {

// Durations in nanoseconds. Each power of two is cut into 32 steps of equal width; below 32 each
// value has its own, and what is longer than half an hour counts as half an hour.
class Histogram {
 public:
  void add(std::uint64_t nanoseconds);
  void add(const Histogram& other);

  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }
  // What `share` (0 to 1) of the durations do not exceed: the end of a step, but not more than
  // max(). 0 when there are none.
  std::uint64_t percentile(double share) const;

 private:
  static constexpr unsigned kStepBits = 5;
  static constexpr unsigned kSteps = 1u << kStepBits;
  static constexpr unsigned kMostBits = 41;

  static std::size_t step_of(std::uint64_t value);
  static std::uint64_t end_of(std::size_t step);

  std::array<std::uint64_t, (kMostBits - kStepBits + 1) * kSteps> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace stag::bench
