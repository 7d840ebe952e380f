#include "bench/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace stag::bench {

std::size_t Histogram::step_of(std::uint64_t value) {
  if (value < kSteps) return value;
  const unsigned power = static_cast<unsigned>(std::bit_width(value)) - 1 - kStepBits;
  return power * std::size_t{kSteps} + (value >> power);
}

std::uint64_t Histogram::end_of(std::size_t step) {
  if (step < 2 * kSteps) return step;
  const std::size_t power = step / kSteps - 1;
  return ((step % kSteps + kSteps + 1) << power) - 1;
}

void Histogram::add(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kLongest = (std::uint64_t{1} << kMostBits) - 1;
  ++counts_[step_of(std::min(nanoseconds, kLongest))];
  ++count_;
  max_ = std::max(max_, nanoseconds);
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

std::uint64_t Histogram::percentile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen > 0 && seen >= wanted) return std::min(end_of(i), max_);
  }
  return max_;
}

}  // namespace stag::bench
