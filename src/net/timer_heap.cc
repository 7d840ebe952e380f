#include "net/timer_heap.h"

#include <utility>

namespace stag::net {

std::uint64_t TimerHeap::add(TimePoint when, Function function) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.when = when;
  slot.order = ++added_;
  slot.function = std::move(function);
  heap_.push_back(index);
  slot.position = static_cast<std::uint32_t>(heap_.size() - 1);
  sift_up(slot.position);
  return std::uint64_t{slots_[index].generation} << 32 | index;
}

void TimerHeap::cancel(std::uint64_t id) {
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= slots_.size() || slots_[index].generation != id >> 32) return;
  // The function is destroyed last: it may own timers.
  const Function dropped = remove(slots_[index].position);
}

std::optional<TimePoint> TimerHeap::earliest() const {
  if (heap_.empty()) return std::nullopt;
  return slots_[heap_.front()].when;
}

TimerHeap::Function TimerHeap::take_due(TimePoint now, std::uint64_t newest) {
  if (heap_.empty()) return {};
  const Slot& first = slots_[heap_.front()];
  if (first.when > now || first.order > newest) return {};
  return remove(0);
}

void TimerHeap::clear() {
  while (!heap_.empty()) const Function dropped = remove(0);
}

bool TimerHeap::before(std::uint32_t a, std::uint32_t b) const {
  const Slot& left = slots_[a];
  const Slot& right = slots_[b];
  return left.when != right.when ? left.when < right.when : left.order < right.order;
}

void TimerHeap::place(std::uint32_t position, std::uint32_t slot) {
  heap_[position] = slot;
  slots_[slot].position = position;
}

void TimerHeap::sift_up(std::uint32_t position) {
  const std::uint32_t slot = heap_[position];
  while (position > 0) {
    const std::uint32_t parent = (position - 1) / 2;
    if (!before(slot, heap_[parent])) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, slot);
}

void TimerHeap::sift_down(std::uint32_t position) {
  const std::uint32_t slot = heap_[position];
  for (;;) {
    std::uint32_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], slot)) break;
    place(position, heap_[child]);
    position = child;
  }
  place(position, slot);
}

TimerHeap::Function TimerHeap::remove(std::uint32_t position) {
  const std::uint32_t index = heap_[position];
  const std::uint32_t last = heap_.back();
  heap_.pop_back();
  if (last != index) {
    place(position, last);
    sift_up(position);
    sift_down(slots_[last].position);
  }
  Slot& slot = slots_[index];
  if (++slot.generation == 0) slot.generation = 1;
  free_.push_back(index);
  return std::exchange(slot.function, {});
}

}  // namespace stag::net
