#include "base/large_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <new>

#include "base/check.h"
#include "base/poison.h"

namespace stag {
namespace {

// Sizes in eighths of powers of two, so that little of a block is wasted, and a page for the header
// in front of it. Anything larger comes from the system each time: a call of that size does not
// notice.
constexpr int kSmallestShift = 16;
constexpr int kLargestShift = 24;
constexpr int kStepShift = 3;
constexpr std::size_t kSizes = std::size_t{kLargestShift - kSmallestShift} << kStepShift;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHeader = 64;

struct Size {
  std::size_t index;  // kSizes: not kept
  std::size_t bytes;
};

Size size_of(std::size_t bytes) {
  const std::size_t smallest = (std::size_t{1} << kSmallestShift) + 1;
  const std::size_t net = std::max(bytes, smallest + kHeader) - kHeader;
  const int shift = std::bit_width(net - 1) - 1;
  if (shift >= kLargestShift) return {kSizes, (bytes + kPage - 1) & ~(kPage - 1)};
  const int step_shift = shift - kStepShift;
  const std::size_t steps = (net - 1) >> step_shift;  // whole ones; 8 to 15
  const std::size_t octave = static_cast<std::size_t>(shift - kSmallestShift) << kStepShift;
  return {octave + steps - (1u << kStepShift), ((steps + 1) << step_shift) + kPage};
}

// Stands at the start of kept pages.
struct Kept {
  std::size_t bytes;
  std::uint64_t since;  // the interval in which they were given
};

constexpr std::size_t kSlots = 128;  // of each size

struct Shelf {
  std::atomic<std::size_t> count{0};  // may lag behind the slots
  std::array<std::atomic<Kept*>, kSlots> slots{};
};

constinit std::array<Shelf, kSizes> shelves{};
constinit std::atomic<std::size_t> kept{0};
constinit std::atomic<std::uint64_t> interval{0};
constinit std::atomic<Duration::rep> interval_began{0};

// The slot that this thread tries first: it finds the pages that it gave back last at once, and
// threads seldom meet.
std::size_t first_slot() {
  static constinit std::atomic<std::size_t> threads{0};
  static constinit thread_local std::size_t own = 0;  // 0: none yet
  if (own == 0) own = threads.fetch_add(1, std::memory_order_relaxed) * (kSlots / 8) + 1;
  return own - 1;
}

void* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap(void* memory, std::size_t bytes) {
  unpoison(memory, bytes);
  STAG_CHECK(munmap(memory, bytes) == 0);
}

Kept* take_from(Shelf& shelf) {
  if (shelf.count.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::size_t first = first_slot();
  for (std::size_t i = 0; i < kSlots; ++i) {
    std::atomic<Kept*>& slot = shelf.slots[(first + i) % kSlots];
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    Kept* const pages = slot.exchange(nullptr, std::memory_order_acquire);
    if (pages == nullptr) continue;
    shelf.count.fetch_sub(1, std::memory_order_relaxed);
    kept.fetch_sub(pages->bytes, std::memory_order_relaxed);
    return pages;
  }
  return nullptr;
}

// False when the shelf is full.
bool put_into(Shelf& shelf, Kept* pages) {
  const std::size_t bytes = pages->bytes;
  if (kept.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kMostKeptBytes) {
    const std::size_t first = first_slot();
    for (std::size_t i = 0; i < kSlots; ++i) {
      std::atomic<Kept*>& slot = shelf.slots[(first + i) % kSlots];
      Kept* empty = nullptr;
      if (slot.load(std::memory_order_relaxed) != nullptr) continue;
      shelf.count.fetch_add(1, std::memory_order_relaxed);
      if (slot.compare_exchange_strong(empty, pages, std::memory_order_release)) return true;
      shelf.count.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  kept.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// Those that were given before the interval `until` go back to the system.
void release_before(std::uint64_t until) {
  for (Shelf& shelf : shelves) {
    if (shelf.count.load(std::memory_order_relaxed) == 0) continue;
    for (std::atomic<Kept*>& slot : shelf.slots) {
      Kept* const pages = slot.exchange(nullptr, std::memory_order_acquire);
      if (pages == nullptr) continue;
      shelf.count.fetch_sub(1, std::memory_order_relaxed);
      const std::size_t bytes = pages->bytes;
      kept.fetch_sub(bytes, std::memory_order_relaxed);
      if (pages->since < until || !put_into(shelf, pages)) unmap(pages, bytes);
    }
  }
}

}  // namespace

Pages take_pages(std::size_t bytes) noexcept {
  const Size size = size_of(bytes);
  if (size.index < kSizes)
    if (void* memory = take_from(shelves[size.index])) {
      unpoison(memory, size.bytes);
      return {memory, size.bytes};
    }
  void* memory = map(size.bytes);
  if (memory == nullptr && kept_page_bytes() != 0) {
    release_kept_pages();
    memory = map(size.bytes);
  }
  return {memory, size.bytes};
}

void give_pages(Pages pages) noexcept {
  const Size size = size_of(pages.bytes - kPage + kHeader);
  auto* const mark =
      ::new (pages.memory) Kept{pages.bytes, interval.load(std::memory_order_relaxed)};
  poison(mark + 1, pages.bytes - sizeof(Kept));
  if (size.index < kSizes && put_into(shelves[size.index], mark)) return;
  unmap(pages.memory, pages.bytes);
}

std::size_t kept_page_bytes() noexcept {
  return kept.load(std::memory_order_relaxed);
}

void release_idle_pages(TimePoint now) noexcept {
  const Duration::rep time = now.time_since_epoch().count();
  Duration::rep began = interval_began.load(std::memory_order_relaxed);
  if (time - began < kIdleInterval.count()) return;
  // Of several threads one does it.
  if (!interval_began.compare_exchange_strong(began, time, std::memory_order_relaxed)) return;
  release_before(interval.fetch_add(1, std::memory_order_relaxed));
}

void release_kept_pages() noexcept {
  release_before(~std::uint64_t{0});
}

}  // namespace stag
