#include "net/timer_heap.h"

#include <algorithm>
#include <utility>

namespace stag::net {
namespace {

// So many entries of cancelled timers may stay besides as many as there are pending ones.
constexpr std::size_t kCancelledKept = 64;

std::uint32_t slot_of(std::uint64_t id) {
  return static_cast<std::uint32_t>(id);
}

}  // namespace

void TimerHeap::make_room(std::size_t count) {
  slots_.reserve(count);
  free_.reserve(count);
  heap_.reserve(2 * count + kCancelledKept);
}

std::uint64_t TimerHeap::add(TimePoint when, Function function) {
  if (free_.empty()) {
    // Room for all slots, so that freeing one never fails.
    slots_.emplace_back();
    free_.reserve(slots_.capacity());
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  const std::uint64_t id = std::uint64_t{slots_[index].generation} << 32 | index;
  heap_.push_back({when, ++added_, id});
  free_.pop_back();
  slots_[index].function = std::move(function);
  std::push_heap(heap_.begin(), heap_.end(), later);
  return id;
}

void TimerHeap::cancel(std::uint64_t id) {
  if (!pending(id)) return;
  ++cancelled_;
  // The function is destroyed last: it may own timers.
  const Function dropped = free_slot(id);
  if (cancelled_ > kCancelledKept && cancelled_ * 2 > heap_.size()) sweep();
}

std::optional<TimePoint> TimerHeap::earliest() {
  skip_cancelled();
  if (heap_.empty()) return std::nullopt;
  return heap_.front().when;
}

TimerHeap::Function TimerHeap::take_due(TimePoint now, std::uint64_t newest) {
  skip_cancelled();
  if (heap_.empty()) return {};
  const Entry first = heap_.front();
  if (first.when > now || first.order > newest) return {};
  drop_first();
  return free_slot(first.id);
}

void TimerHeap::clear() {
  while (earliest().has_value()) {
    const std::uint64_t id = heap_.front().id;
    drop_first();
    const Function dropped = free_slot(id);
  }
}

bool TimerHeap::pending(std::uint64_t id) const {
  return slot_of(id) < slots_.size() && slots_[slot_of(id)].generation == id >> 32;
}

TimerHeap::Function TimerHeap::free_slot(std::uint64_t id) {
  Slot& slot = slots_[slot_of(id)];
  if (++slot.generation == 0) slot.generation = 1;
  free_.push_back(slot_of(id));
  return std::exchange(slot.function, {});
}

void TimerHeap::drop_first() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  heap_.pop_back();
}

void TimerHeap::skip_cancelled() {
  while (cancelled_ > 0 && !pending(heap_.front().id)) {
    drop_first();
    --cancelled_;
  }
}

void TimerHeap::sweep() {
  std::erase_if(heap_, [this](const Entry& entry) { return !pending(entry.id); });
  std::make_heap(heap_.begin(), heap_.end(), later);
  cancelled_ = 0;
}

}  // namespace stag::net
