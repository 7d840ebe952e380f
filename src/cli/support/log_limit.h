// LogLimit: bounds the lines of one Reason in the log, so that a peer cannot fill the disk with one
// message. Not synchronised.
#pragma once

#include <array>
#include <cstdint>

#include "base/loop.h"
#include "base/reason.h"

namespace stag::cli {

class LogLimit {
 public:
  static constexpr std::uint32_t kLines = 10;  // of one Reason
  static constexpr Duration kWindow = std::chrono::seconds(1);

  // Whether a line about `reason` may be written at `now`.
  bool admit(Reason reason, TimePoint now);

  // Calls report(reason, count) for every Reason of which `count` lines were left out in a window
  // that is over by `now`.
  template <class Report>
  void settle(TimePoint now, Report report) {
    for (std::size_t i = 0; owing_ > 0 && i < kinds_.size(); ++i) {
      Kind& kind = kinds_[i];
      if (kind.left_out == 0 || now - kind.since < kWindow) continue;
      --owing_;
      report(static_cast<Reason>(i), std::exchange(kind.left_out, 0));
    }
  }

 private:
  struct Kind {
    TimePoint since{};
    std::uint32_t lines = 0;
    std::uint64_t left_out = 0;
  };
  std::array<Kind, kReasonCount> kinds_{};
  std::size_t owing_ = 0;  // Reasons with lines left out
};

}  // namespace stag::cli
