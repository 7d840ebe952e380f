#include "fabric/stall_watch.h"

#include <algorithm>

namespace stag::fabric {

StallWatch::StallWatch(Duration limit)
    : limit_(limit),
      least_bytes_(
          std::max<std::uint64_t>(1, kLeastRate *
                                         static_cast<std::uint64_t>(std::max(limit, Duration(0)) /
                                                                    std::chrono::milliseconds(1)) /
                                         1000)) {}

bool StallWatch::is_stalled(TimePoint now, const Debt& debt) {
  if (debt.settled >= debt.newest) {
    running_ = false;
    return false;
  }
  const bool goes_on = debt.settled >= then_.newest || debt.bytes >= then_.bytes + least_bytes_;
  if (running_ && !goes_on) return now - since_ >= limit_;
  running_ = true;
  since_ = now;
  then_ = debt;
  return false;
}

}  // namespace stag::fabric
