// What the kernel counts about processes when it lets us: system calls and context switches.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "net/unique_fd.h"

namespace stag::bench {

// All threads that the processes have when it is made. Counting costs each system call some 100 ns,
// so it is for samples of its own.
class Counters {
 public:
  struct Counts {
    std::uint64_t system_calls = 0, switches = 0;
  };
  explicit Counters(std::initializer_list<pid_t> processes);
  // Since construction; nothing when the kernel refused: it wants root, and perf events with the
  // raw_syscalls trace point.
  std::optional<Counts> read() const;

 private:
  void add(pid_t thread, std::uint64_t tracepoint);

  std::vector<net::UniqueFd> system_calls_, switches_;
  bool refused_ = false;
};

}  // namespace stag::bench
