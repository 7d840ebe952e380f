// A limit on bytes that several connections, on several threads, share.
#pragma once

#include <atomic>
#include <cstdint>

namespace stag::rpcrdma {

class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t limit) : limit_(limit) {}

  // When nothing is reserved even more than the limit is granted, so that no request waits for
  // ever.
  bool try_reserve(std::uint64_t bytes) {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (used != 0 && (used > limit_ || bytes > limit_ - used)) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void release(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  bool exhausted() const { return used() >= limit_; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace stag::rpcrdma
