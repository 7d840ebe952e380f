#include "rpc/loop_counts.h"

namespace stag::rpc {
namespace {

std::uint64_t next_number() {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

LoopCounts::LoopCounts() : number_(next_number()) {}

LoopCounts::Place& LoopCounts::place(const Loop* loop) {
  // A thread has one loop, and most often asks for the same one.
  struct Known {
    std::uint64_t counts = 0;
    const Loop* loop = nullptr;
    Place* place = nullptr;
  };
  static constinit thread_local Known known;
  if (known.counts != number_ || known.loop != loop) {
    const std::lock_guard lock(mutex_);
    known = {number_, loop, &lines_[loop].count};
  }
  return *known.place;
}

std::size_t LoopCounts::of(const Loop& loop) const {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find(&loop);
  return found == lines_.end() ? 0 : found->second.count.load(std::memory_order_acquire);
}

std::size_t LoopCounts::sum() const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const auto& [loop, line] : lines_) all += line.count.load(std::memory_order_acquire);
  return all;
}

}  // namespace stag::rpc
