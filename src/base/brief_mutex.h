// A mutex for sections of a few hundred nanoseconds, entered from every loop: to sleep and be woken
// takes ten times as long as to wait, so a thread that finds it locked polls for a while before it
// sleeps. An uncontended lock and unlock cost one atomic exchange each. Lockable, for
// std::lock_guard.
#pragma once

#include <atomic>
#include <cstdint>

namespace stag {

class BriefMutex {
 public:
  BriefMutex() = default;
  BriefMutex(const BriefMutex&) = delete;
  BriefMutex& operator=(const BriefMutex&) = delete;

  bool try_lock() {
    std::uint32_t state = kFree;
    return state_.compare_exchange_strong(state, kTaken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void lock() {
    if (!try_lock()) wait();
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWanted) state_.notify_one();
  }

 private:
  static constexpr std::uint32_t kFree = 0, kTaken = 1;
  static constexpr std::uint32_t kWanted = 2;  // locked, and a thread may sleep
  static constexpr int kLooks = 200;           // a microsecond or two

  void wait() {
    for (int i = 0; i < kLooks; ++i)
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree)
      state_.wait(kWanted, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> state_{kFree};
};

// Holds one for a scope, where there is no <mutex>: in pure modules.
class [[nodiscard]] BriefLock {
 public:
  explicit BriefLock(BriefMutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;
  ~BriefLock() { mutex_.unlock(); }

 private:
  BriefMutex& mutex_;
};

}  // namespace stag
