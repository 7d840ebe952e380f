// A count that many threads change all the time and that is seldom read: each thread has a cache
// line of its own, so that threads do not wait for one another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace stag {

class StripedCount {
 public:
  using Place = std::atomic<std::size_t>;

  // The counter of the calling thread. Code that adds to it keeps the reference and subtracts
  // there, on whatever thread that happens.
  Place& place() { return places_[index()].count; }
  // The total; exact when no thread changes the count meanwhile.
  std::size_t sum() const {
    std::size_t all = 0;
    for (const Line& line : places_) all += line.count.load(std::memory_order_acquire);
    return all;
  }

 private:
  static constexpr std::size_t kPlaces = 16;
  struct alignas(64) Line {
    Place count{0};
  };

  // More threads than places share some.
  static std::size_t index() {
    static constinit std::atomic<std::size_t> threads{0};
    static constinit thread_local std::size_t own = 0;  // 0: none yet
    if (own == 0) own = threads.fetch_add(1, std::memory_order_relaxed) % kPlaces + 1;
    return own - 1;
  }

  std::array<Line, kPlaces> places_;
};

}  // namespace stag
