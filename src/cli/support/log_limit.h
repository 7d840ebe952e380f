// LogLimit: bounds the lines of one kind in the log, so that a peer cannot fill the disk with one
// message. Not synchronised.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/loop.h"
#include "base/reason.h"

namespace stag::cli {

// `Kind` is an enumeration of `kinds` values.
template <class Kind, std::size_t kinds>
class LogLimits {
 public:
  static constexpr std::uint32_t kLines = 10;  // of one kind
  static constexpr Duration kWindow = std::chrono::seconds(1);

  // Whether a line about `kind` may be written at `now`; `most` in a window may.
  bool admit(Kind kind, TimePoint now, std::uint32_t most = kLines) {
    Seen& seen = seen_[static_cast<std::size_t>(kind)];
    if (seen.lines == 0 || now - seen.since >= kWindow) {
      seen.since = now;
      seen.lines = 0;
    }
    if (seen.lines < most) {
      ++seen.lines;
      return true;
    }
    if (seen.left_out++ == 0) ++owing_;
    return false;
  }

  // Calls report(kind, count) for every kind of which `count` lines were left out in a window that
  // is over by `now`.
  template <class Report>
  void settle(TimePoint now, Report report) {
    for (std::size_t i = 0; owing_ > 0 && i < seen_.size(); ++i) {
      Seen& seen = seen_[i];
      if (seen.left_out == 0 || now - seen.since < kWindow) continue;
      --owing_;
      report(static_cast<Kind>(i), std::exchange(seen.left_out, 0));
    }
  }

 private:
  struct Seen {
    TimePoint since{};
    std::uint32_t lines = 0;
    std::uint64_t left_out = 0;
  };
  std::array<Seen, kinds> seen_{};
  std::size_t owing_ = 0;  // kinds with lines left out
};

using LogLimit = LogLimits<Reason, kReasonCount>;

}  // namespace stag::cli
