// A Loop that a test turns by hand: virtual time, one thread, offloaded work runs inline.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/loop.h"
#include "base/task.h"

namespace stag::testing {

class ManualLoop final : public Loop {
 public:
  TimePoint now() const override { return now_; }
  void post(Function function) override { ready_.push_back(std::move(function)); }
  [[nodiscard]] Timer after(Duration delay, Function function) override {
    const std::uint64_t id = ++last_timer_;
    timers_.emplace(std::pair(now_ + delay, id), std::move(function));
    return Timer(this, id);
  }
  void offload(Function work, Function done) override {
    work();
    post(std::move(done));
  }
  bool on_thread() const override { return true; }

  // Runs everything that is ready now, and what that makes ready.
  void drain() {
    while (!ready_.empty()) {
      Function next = std::move(ready_.front());
      ready_.pop_front();
      next();
    }
  }
  // Moves time to the next timer and runs it; false when there is none.
  bool advance() {
    if (timers_.empty()) return false;
    auto first = timers_.begin();
    now_ = first->first.first;
    Function function = std::move(first->second);
    timers_.erase(first);
    function();
    return true;
  }
  void pass(Duration time) {
    const TimePoint end = now_ + time;
    drain();
    while (!timers_.empty() && timers_.begin()->first.first <= end) {
      advance();
      drain();
    }
    now_ = end;
  }

  // Runs until `task` has ended; nullopt when nothing is left to do and it has not.
  template <class T>
  std::optional<T> run(Task<T> task) {
    std::optional<T> result;
    detach(store(std::move(task), result));
    while (!result) {
      if (!ready_.empty())
        drain();
      else if (!advance())
        break;
    }
    return result;
  }

 private:
  template <class T>
  static Task<void> store(Task<T> task, std::optional<T>& to) {
    T value = co_await std::move(task);
    to.emplace(std::move(value));
  }
  void cancel_timer(std::uint64_t id) override {
    for (auto at = timers_.begin(); at != timers_.end(); ++at) {
      if (at->first.second != id) continue;
      timers_.erase(at);
      return;
    }
  }

  TimePoint now_{std::chrono::hours(1)};
  std::deque<Function> ready_;
  std::map<std::pair<TimePoint, std::uint64_t>, Function> timers_;
  std::uint64_t last_timer_ = 0;
};

}  // namespace stag::testing
