// Ongoing: operations on files that have not ended yet. A caller that waits for those of a file
// waits for the ones that began before. It needs no memory: operations stand where they are made.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <cstdint>

#include "base/task.h"
#include "fuse/waiters.h"

namespace stag::fuse {

class Ongoing {
 public:
  // One on the file that the kernel knows as `number`, until this is destroyed.
  class Operation {
   public:
    Operation(Ongoing& all, std::uint64_t number);
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    friend Ongoing;
    Ongoing& all_;
    const std::uint64_t number_;
    const std::uint64_t which_;
    Operation* before_;
    Operation* after_ = nullptr;
  };

  Ongoing() = default;
  Ongoing(const Ongoing&) = delete;
  Ongoing& operator=(const Ongoing&) = delete;

  // Ends when those on the file have ended that are in progress now.
  Task<void> ended(std::uint64_t number);

 private:
  bool is_any_before(std::uint64_t number, std::uint64_t which) const;

  Operation* first_ = nullptr;  // in the order in which they began
  Operation* last_ = nullptr;
  std::uint64_t next_ = 1;
  Waiters waiters_;  // for one to end
};

}  // namespace stag::fuse
