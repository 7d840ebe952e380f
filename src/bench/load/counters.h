// Counters: the kernel's counts of some processes, if it permits them: system calls, context
// switches, and allocations from the heap.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/unique_fd.h"

namespace stag::bench {

// All threads that the processes have when it is made. Counting costs each system call some 100 ns,
// and each allocation a microsecond, so it is for samples of its own.
class Counters {
 public:
  struct Counts {
    std::uint64_t system_calls = 0, switches = 0;
    // Calls of malloc(), which operator new is; nothing where the kernel has no probes of user
    // space.
    std::optional<std::uint64_t> allocations{};
  };
  // The processes run this program. With `allocations` destroying it takes some 80 ms a thread:
  // that is what the kernel needs to be rid of a probe.
  Counters(std::initializer_list<pid_t> processes, bool allocations);
  // Since construction; nothing when the kernel refused: it wants root, and perf events with the
  // raw_syscalls trace point.
  std::optional<Counts> read() const;

 private:
  void add(pid_t thread, std::uint64_t tracepoint);

  std::vector<UniqueFd> system_calls_, switches_, allocations_;
  bool refused_ = false, allocations_wanted_;
};

}  // namespace stag::bench
