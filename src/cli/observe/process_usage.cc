#include "cli/observe/process_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "base/unique_fd.h"

namespace stag::cli {
namespace {

// Before main(). It stays the same when the clock is set: who watches it takes a change for a
// restart.
const std::chrono::system_clock::time_point kBegan = std::chrono::system_clock::now();

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

struct ProcessUsageSource::Files {
  struct Close {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };

  std::uint64_t resident_bytes() const;
  std::uint64_t open_descriptors();

  const UniqueFd statm{::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)};
  std::mutex mutex;
  const std::unique_ptr<DIR, Close> descriptors{::opendir("/proc/self/fd")};  // under `mutex`
};

// proc(5): pages, the second of which are resident.
std::uint64_t ProcessUsageSource::Files::resident_bytes() const {
  std::array<char, 256> text{};
  if (::pread(statm.fd(), text.data(), text.size() - 1, 0) <= 0) return 0;
  char* second = nullptr;
  std::strtoull(text.data(), &second, 10);
  return std::strtoull(second, nullptr, 10) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// proc(5): one entry for each, beside "." and "..".
std::uint64_t ProcessUsageSource::Files::open_descriptors() {
  if (descriptors == nullptr) return 0;
  const std::lock_guard lock(mutex);
  std::uint64_t count = 0;
  ::rewinddir(descriptors.get());
  while (const dirent* const entry = ::readdir(descriptors.get()))
    if (entry->d_name[0] != '.') ++count;
  return count;
}

ProcessUsageSource::ProcessUsageSource() : files_(std::make_unique<Files>()) {}
ProcessUsageSource::~ProcessUsageSource() = default;

ProcessUsage ProcessUsageSource::usage() const {
  return {.memory_bytes = files_->resident_bytes(),
          .open_files = files_->open_descriptors(),
          .max_files = most_descriptors(),
          .processor_time = processor_time(),
          .began = kBegan};
}

}  // namespace stag::cli
