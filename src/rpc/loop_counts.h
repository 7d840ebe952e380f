// A count for each loop, which its thread changes all the time and others seldom read: each has a
// cache line of its own, so that threads do not wait for one another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/loop.h"

namespace stag::rpc {

class LoopCounts {
 public:
  using Place = std::atomic<std::size_t>;

  LoopCounts();
  // The count of `loop`, for ever. Code that adds to it keeps the reference and subtracts there.
  Place& place(const Loop* loop);
  // Exact when no thread changes the counts meanwhile.
  std::size_t of(const Loop& loop) const;
  std::size_t sum() const;

 private:
  struct alignas(64) Line {
    Place count{0};
  };

  const std::uint64_t number_;  // no other LoopCounts of the process has or had it
  mutable std::mutex mutex_;
  std::map<const Loop*, Line> lines_;
};

}  // namespace stag::rpc
