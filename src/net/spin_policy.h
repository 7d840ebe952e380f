// How long an idle loop looks for events before it sleeps. Sleeping and being woken cost both ends
// several microseconds of CPU time each, and a CPU that went idle answers late: where the next
// event is that near, looking for it is cheaper in every respect. Where it is not - a quiet
// connection, a peer that waits for this very CPU - looking only takes time away from others, so
// what was found decides whether to go on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/loop.h"

namespace stag::net {

class SpinPolicy {
 public:
  // `fixed`: always so long. Zero: a little while, as long as it pays.
  explicit SpinPolicy(Duration fixed) : fixed_(fixed) {}

  // Whether to look before the next sleep, and for how long.
  bool worthwhile() {
    if (fixed_ > Duration::zero() || score_ > 0) return true;
    return ++skipped_ >= kSkips;
  }
  Duration limit() const { return fixed_ > Duration::zero() ? fixed_ : kLittle; }
  // What came of it.
  void found(bool something) {
    skipped_ = 0;
    score_ = std::clamp(score_ + (something ? 1 : -1), 0, kMost);
  }

 private:
  static constexpr Duration kLittle = std::chrono::microseconds(50);
  static constexpr int kMost = 8;
  // Waits without spinning after which a loop that gave it up tries again.
  static constexpr std::uint32_t kSkips = 64;

  const Duration fixed_;
  int score_ = kMost;
  std::uint32_t skipped_ = 0;
};

}  // namespace stag::net
