// What this process uses, for metrics and `stag status`. Zero where Linux does not say it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/loop.h"

namespace stag::cli {

struct ProcessUsage {
  std::uint64_t memory_bytes = 0;  // resident
  std::uint64_t open_files = 0;    // descriptors
  std::uint64_t max_files = 0;     // how many it may have (RLIMIT_NOFILE)
  Duration processor_time{};       // of all threads, in the kernel, too
  std::chrono::system_clock::time_point began;
};

// Keeps what it reads open, so that it can say how near to its limit a process is that has no
// descriptor left. Any thread.
class ProcessUsageSource {
 public:
  ProcessUsageSource();
  ~ProcessUsageSource();
  ProcessUsageSource(const ProcessUsageSource&) = delete;
  ProcessUsageSource& operator=(const ProcessUsageSource&) = delete;

  ProcessUsage usage() const;

 private:
  struct Files;
  const std::unique_ptr<Files> files_;
};

}  // namespace stag::cli
