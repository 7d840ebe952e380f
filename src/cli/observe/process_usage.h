// What this process uses, for metrics and `stag status`. Zero where Linux does not say it.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/loop.h"

namespace stag::cli {

struct ProcessUsage {
  std::uint64_t memory_bytes = 0;  // resident
  std::uint64_t open_files = 0;    // descriptors
  std::uint64_t max_files = 0;     // how many it may have (RLIMIT_NOFILE)
  Duration processor_time{};       // of all threads, in the kernel, too
  std::chrono::system_clock::time_point began;
};

// Any thread.
ProcessUsage process_usage();

}  // namespace stag::cli
