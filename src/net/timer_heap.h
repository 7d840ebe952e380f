// The timers of one loop: a binary heap over reused slots, so a steady flow of timers allocates
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/loop.h"

namespace stag::net {

class TimerHeap {
 public:
  using Function = Loop::Function;

  // The id is never zero and is not used again before 2^32 timers have passed through its slot.
  std::uint64_t add(TimePoint when, Function function);
  // Ids of timers that have run or were cancelled are ignored.
  void cancel(std::uint64_t id);
  std::optional<TimePoint> earliest() const;
  // Orders timers by when they were added; see take_due().
  std::uint64_t newest() const { return added_; }
  // Removes and returns the earliest function due at `now`, but none added after `newest`: a timer
  // that starts itself anew with no delay must not keep the loop from everything else. Equal times
  // keep their order.
  Function take_due(TimePoint now, std::uint64_t newest);
  // Destroys all functions without running them.
  void clear();

 private:
  struct Slot {
    TimePoint when;
    std::uint64_t order = 0;
    std::uint32_t generation = 1;
    std::uint32_t position = 0;
    Function function;
  };

  bool before(std::uint32_t a, std::uint32_t b) const;
  void place(std::uint32_t position, std::uint32_t slot);
  void sift_up(std::uint32_t position);
  void sift_down(std::uint32_t position);
  Function remove(std::uint32_t position);

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> heap_;
  std::uint64_t added_ = 0;
};

}  // namespace stag::net
