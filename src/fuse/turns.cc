#include "fuse/turns.h"

namespace stag::fuse {

// Suspends until an operation has ended.
struct Turns::Changed {
  std::vector<std::coroutine_handle<>>& waiters;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { waiters.push_back(waiter); }
  void await_resume() const {}
};

bool Turns::taken(std::uint64_t number) const {
  const auto found = files_.find(number);
  return found != files_.end() && found->second.alone;
}

Task<Turns::Turn> Turns::alone(std::uint64_t number) {
  while (taken(number)) co_await Changed{waiters_};
  files_[number].alone = true;
  Turn turn(*this, number, true);
  while (files_[number].together > 0) co_await Changed{waiters_};
  co_return turn;
}

Task<Turns::Turn> Turns::together(std::uint64_t number) {
  while (taken(number)) co_await Changed{waiters_};
  ++files_[number].together;
  co_return Turn(*this, number, false);
}

void Turns::end(std::uint64_t number, bool alone) {
  const auto found = files_.find(number);
  File& file = found->second;
  if (alone)
    file.alone = false;
  else
    --file.together;
  if (!file.alone && file.together == 0) files_.erase(found);
  for (const std::coroutine_handle<> waiter : std::exchange(waiters_, {})) waiter.resume();
}

}  // namespace stag::fuse
