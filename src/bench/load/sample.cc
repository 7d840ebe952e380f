#include "bench/load/sample.h"

#include <unistd.h>

#include <chrono>
#include <ctime>

namespace stag::bench {

std::uint64_t nanoseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

double cpu_seconds_of(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (pid == kNoPeer) return 0;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

Stopwatch::Stopwatch(pid_t peer)
    : peer_(peer),
      cpu_(cpu_seconds_of(getpid()) + cpu_seconds_of(peer)),
      begin_(nanoseconds_now()) {}

double Stopwatch::elapsed() const {
  return static_cast<double>(nanoseconds_now() - begin_) / 1e9;
}

Sample Stopwatch::stop(std::uint64_t operations, std::uint64_t bytes) const {
  const double wall = elapsed();
  const double cpu = cpu_seconds_of(getpid()) + cpu_seconds_of(peer_) - cpu_;
  return {wall, cpu, operations, bytes};
}

}  // namespace stag::bench
