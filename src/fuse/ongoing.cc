#include "fuse/ongoing.h"

namespace stag::fuse {

void Ongoing::end(const Key& key) {
  running_.erase(key);
  if (waiters_.empty()) return;
  for (const std::coroutine_handle<> waiter : std::exchange(waiters_, {})) waiter.resume();
}

Task<void> Ongoing::ended(std::uint64_t number) {
  struct Ended {
    std::vector<std::coroutine_handle<>>& waiters;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) { waiters.push_back(waiter); }
    void await_resume() const {}
  };
  const std::uint64_t later = next_;
  for (;;) {
    const auto oldest = running_.lower_bound({number, 0});
    if (oldest == running_.end() || *oldest >= Key(number, later)) co_return;
    co_await Ended{waiters_};
  }
}

}  // namespace stag::fuse
