#include "cli/observe/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace stag::cli {
namespace {

// Before main(). It stays the same when the clock is set: who watches it takes a change for a
// restart.
const std::chrono::system_clock::time_point kBegan = std::chrono::system_clock::now();

// proc(5): pages, the second of which are resident.
std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// proc(5): one entry for each.
std::uint64_t open_descriptors() {
  std::uint64_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error))
    ++count;
  return count;
}

std::uint64_t most_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

Duration processor_time() {
  timespec used{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

ProcessUsage process_usage() {
  return {.memory_bytes = resident_bytes(),
          .open_files = open_descriptors(),
          .max_files = most_descriptors(),
          .processor_time = processor_time(),
          .began = kBegan};
}

}  // namespace stag::cli
