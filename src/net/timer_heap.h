// The timers of one loop: a binary heap over reused slots, so a steady flow of timers allocates
// nothing. Nearly every timer is a deadline that is met, so cancelling is the common end: it frees
// the slot and leaves the heap's entry behind, which is swept out with others of its kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/loop.h"

namespace stag::net {

class TimerHeap {
 public:
  using Function = Loop::Function;

  // Up to so many pending timers need no memory from now on. Untouched, the room for them costs
  // addresses only.
  void make_room(std::size_t count);
  // The id is never zero and is not used again before 2^32 timers have passed through its slot.
  std::uint64_t add(TimePoint when, Function function);
  // Ids of timers that have run or were cancelled are ignored.
  void cancel(std::uint64_t id);
  std::optional<TimePoint> earliest();
  // Whether take_due() may have something: what every turn asks, so a timer that was cancelled may
  // count.
  bool may_be_due(TimePoint now) const { return !heap_.empty() && heap_.front().when <= now; }
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
    std::uint32_t generation = 1;
    Function function;
  };
  struct Entry {
    TimePoint when;
    std::uint64_t order = 0;
    std::uint64_t id = 0;
  };
  // The heap's order: the latest is less than all others.
  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }

  bool pending(std::uint64_t id) const;
  Function free_slot(std::uint64_t id);
  void drop_first();
  // Afterwards the first entry, if there is one, is of a pending timer.
  void skip_cancelled();
  void sweep();

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<Entry> heap_;
  std::size_t cancelled_ = 0;  // entries whose timer is gone
  std::uint64_t added_ = 0;
};

}  // namespace stag::net
