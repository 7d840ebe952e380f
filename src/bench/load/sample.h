// Sample: the result of one measurement, and the clocks for it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "bench/load/histogram.h"

namespace stag::bench {

struct Sample {
  double seconds = 0;      // wall clock
  double cpu_seconds = 0;  // of both processes, user and system
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  Histogram latency{};  // of each operation; of a raw stream none

  double per_operation() const {
    return operations == 0 ? 0 : seconds / static_cast<double>(operations);
  }
  double rate() const { return seconds == 0 ? 0 : static_cast<double>(operations) / seconds; }
  double bandwidth() const { return seconds == 0 ? 0 : static_cast<double>(bytes) / seconds; }
};

// For a Stopwatch without a peer.
inline constexpr pid_t kNoPeer = -1;

// Monotonic.
std::uint64_t nanoseconds_now();
// CPU time the process has used so far, user and system, in seconds; 0 for kNoPeer.
double cpu_seconds_of(pid_t pid);

// Wall and CPU time from construction to stop(), of this process and `peer`.
class Stopwatch {
 public:
  explicit Stopwatch(pid_t peer);
  double elapsed() const;  // seconds
  Sample stop(std::uint64_t operations, std::uint64_t bytes) const;

 private:
  pid_t peer_;
  double cpu_;
  std::uint64_t begin_;
};

}  // namespace stag::bench
