#include "fuse/turns.h"

namespace stag::fuse {

// Suspends until an operation has ended.
struct Turns::Changed {
  std::vector<std::coroutine_handle<>>& waiters;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { waiters.push_back(waiter); }
  void await_resume() const {}
};

bool Turns::taken(const Key& key) const {
  const auto found = running_.find(key);
  return found != running_.end() && found->second.alone;
}

Task<Turns::Turn> Turns::alone(Key key) {
  while (taken(key)) co_await Changed{waiters_};
  running_[key].alone = true;
  Turn turn(*this, key, true);
  while (running_[key].together > 0) co_await Changed{waiters_};
  co_return turn;
}

Task<Turns::Turn> Turns::together(Key key) {
  while (taken(key)) co_await Changed{waiters_};
  ++running_[key].together;
  co_return Turn(*this, key, false);
}

void Turns::end(const Key& key, bool alone) {
  const auto found = running_.find(key);
  Operations& operations = found->second;
  if (alone)
    operations.alone = false;
  else
    --operations.together;
  if (!operations.alone && operations.together == 0) running_.erase(found);
  for (const std::coroutine_handle<> waiter : std::exchange(waiters_, {})) waiter.resume();
}

}  // namespace stag::fuse
