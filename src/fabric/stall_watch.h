// Whether a peer goes on with what it owes: taking our bytes, answering our Reads, ending a message
// that it has begun. Time and counts are the caller's; one StallWatch for each kind of debt.
//
// Being slow is no fault, standing still is. A peer that moves next to nothing would hold memory
// for ever just as well: below kLeastRate, which no network has on which files are of use, it
// counts as standing still.
#pragma once

#include <cstdint>

#include "base/loop.h"

namespace stag::fabric {

// Items are numbered in the order in which they became due, and settled in that order.
struct Debt {
  std::uint64_t newest = 0;   // the last item that became due
  std::uint64_t settled = 0;  // the last item that is settled; all are when it is the newest
  std::uint64_t bytes = 0;    // moved so far; never less while the same items are due
};

class StallWatch {
 public:
  static constexpr std::uint64_t kLeastRate = 256;  // bytes a second

  explicit StallWatch(Duration limit);
  // Called from time to time. True when for the whole limit, from one call to a later one, neither
  // the items that were due settled nor bytes moved at the least rate.
  bool is_stalled(TimePoint now, const Debt& debt);
  // Whether something was due at the last call.
  bool running() const { return running_; }

 private:
  Duration limit_;
  std::uint64_t least_bytes_;  // in the time of the limit
  // What the time runs for.
  bool running_ = false;
  TimePoint since_{};
  Debt then_;
};

}  // namespace stag::fabric
