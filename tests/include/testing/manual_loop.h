// A Loop that a test turns by hand: virtual time, one thread, offloaded work runs inline unless the
// test wants it held, as by a thread that blocks.
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
    const std::pair key(now_ + delay, id);
    if (fired_.empty()) {
      timers_.emplace(key, std::move(function));
    } else {
      fired_.key() = key;
      fired_.mapped() = std::move(function);
      timers_.insert(std::move(fired_));
    }
    return Timer(this, id);
  }
  void offload(Function work, Function done) override {
    if (holds_offloaded) return held_.emplace_back(std::move(work), std::move(done)), void();
    work();
    post(std::move(done));
  }
  void run_offloaded() {
    for (auto& [work, done] : std::exchange(held_, {})) {
      work();
      post(std::move(done));
    }
  }
  bool holds_offloaded = false;
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
    fired_ = timers_.extract(timers_.begin());
    now_ = fired_.key().first;
    Function function = std::move(fired_.mapped());
    function();
    return true;
  }
  bool has_timer() const { return !timers_.empty(); }
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
  std::deque<std::pair<Function, Function>> held_;
  using Timers = std::map<std::pair<TimePoint, std::uint64_t>, Function>;
  Timers timers_;
  // The place of the last timer that has fired, for the next one: as in net::EpollLoop a timer that
  // starts itself anew needs no memory.
  Timers::node_type fired_;
  std::uint64_t last_timer_ = 0;
};

}  // namespace stag::testing
