#include "rpc/reconnector.h"

#include <algorithm>

#include "base/failure.h"
#include "base/pause.h"

namespace stag::rpc {
namespace {

// Whatever ends an attempt, also an exception, there may be another.
struct Connecting {
  explicit Connecting(bool& is) : flag(is) { flag = true; }
  ~Connecting() { flag = false; }
  Connecting(const Connecting&) = delete;
  bool& flag;
};

}  // namespace

Task<Result<Ok, Reason>> Reconnector::connect(CancelToken cancel) {
  const Connecting connecting(connecting_);
  co_return co_await owner_.attempt(cancel);
}

void Reconnector::start() {
  if (!connecting_ && !stopped()) tasks_.add(run());
}

Task<void> Reconnector::run() {
  Reason reason = Reason::None;
  try {
    const Connecting connecting(connecting_);
    reason = co_await attempts();
  } catch (...) {
    reason = trace_exception(Reason::TaskFailed);
  }
  owner_.on_attempts_ended(reason);
}

// Why there is no connection.
Task<Reason> Reconnector::attempts() {
  const TimePoint begun = loop_.now();
  while (!stopped() && owner_.wants_connection()) {
    const Duration wait = last_attempt_ + next_back_off() - loop_.now();
    if (wait > Duration::zero()) co_await pause(loop_, wait, stop_);
    if (stopped() || !owner_.wants_connection()) break;
    ++failures_;
    last_attempt_ = loop_.now();  // of one that ends in an exception
    const Result<Ok, Reason> made = co_await owner_.attempt(stop_);
    last_attempt_ = loop_.now();
    if (made) co_return Reason::None;
    owner_.on_attempt_failed(made.error());
    if (loop_.now() - begun >= back_off_.give_up_after) co_return made.error();
  }
  co_return stopped() ? Reason::Shutdown : Reason::None;
}

Duration Reconnector::next_back_off() {
  if (failures_ == 0) return Duration::zero();
  const Duration doubled = back_off_.first * (1 << std::min(failures_ - 1, 16u));
  const auto half = std::min(doubled, back_off_.longest).count() / 2;
  return Duration(half + std::uniform_int_distribution<Duration::rep>(0, half)(random_));
}

}  // namespace stag::rpc
