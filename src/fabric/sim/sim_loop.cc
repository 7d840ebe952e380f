#include "fabric/sim/sim_loop.h"

#include <algorithm>

namespace stag::fabric {

SimLoop::SimLoop(std::optional<std::uint64_t> shuffle_seed) {
  if (shuffle_seed) shuffle_.emplace(*shuffle_seed);
}

SimLoop::~SimLoop() {
  // A pending function may own Timers of this loop: each is destroyed while the loop is still
  // whole.
  while (!ready_.empty()) {
    Function last = std::move(ready_.front());
    ready_.pop_front();
  }
  while (!timers_.empty()) cancel_timer(std::get<2>(timers_.begin()->first));
}

void SimLoop::post(Function function) {
  ready_.push_back(std::move(function));
}

Timer SimLoop::after(Duration delay, Function function) {
  const std::uint64_t id = next_id_++;
  const Key key{now_ + std::max(delay, Duration::zero()), shuffle_ ? shuffle_->next() : 0, id};
  // In this order: a number without a timer, where there is no memory for that, hurts nobody; a
  // timer without a number could not be cancelled.
  keys_.emplace(id, key);
  timers_.emplace(key, std::move(function));
  return Timer(this, id);
}

void SimLoop::offload(Function work, Function done) {
  work();
  post(std::move(done));
}

void SimLoop::cancel_timer(std::uint64_t id) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return;
  // Destroyed last, when both tables are consistent: its captures may cancel further timers.
  const auto cancelled = timers_.extract(found->second);
  keys_.erase(found);
}

bool SimLoop::timer_goes_first() {
  if (timers_.empty()) return false;
  if (ready_.empty()) return true;
  return shuffle_ && std::get<0>(timers_.begin()->first) <= now_ && shuffle_->chance(500);
}

void SimLoop::run_first_timer() {
  auto first = timers_.extract(timers_.begin());
  now_ = std::max(now_, std::get<0>(first.key()));
  keys_.erase(std::get<2>(first.key()));
  first.mapped()();
}

bool SimLoop::step() {
  return step_before(TimePoint::max());
}

bool SimLoop::step_before(TimePoint end) {
  if (timer_goes_first()) {
    if (std::get<0>(timers_.begin()->first) > end) return false;
    run_first_timer();
    return true;
  }
  if (ready_.empty()) return false;
  Function function = std::move(ready_.front());
  ready_.pop_front();
  function();
  return true;
}

void SimLoop::run_until_idle() {
  constexpr std::uint64_t kEndless = 200'000'000;
  for (std::uint64_t steps = 0; step(); ++steps) STAG_CHECK(steps < kEndless);
}

void SimLoop::run_for(Duration duration) {
  const TimePoint end = now_ + duration;
  while (step_before(end)) {
  }
  now_ = end;
}

}  // namespace stag::fabric
