// SimLoop: a Loop in virtual time. Nothing runs but inside a run…() call, on the calling thread;
// time stands still while anything is ready and then jumps to the next timer. So a run depends on
// nothing but its input and its seed.
//
// Order: posted functions run first in, first out. Timers run by time, then by insertion. With a
// shuffle seed, what Loop leaves open is decided by chance: which of several timers of the same
// instant fires first, and whether a due timer or a posted function goes next.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/loop.h"
#include "base/task.h"
#include "fabric/sim/random.h"

namespace stag::fabric {

class SimLoop final : public Loop {
 public:
  explicit SimLoop(std::optional<std::uint64_t> shuffle_seed = std::nullopt);
  ~SimLoop() override;

  TimePoint now() const override { return now_; }
  void post(Function function) override;
  [[nodiscard]] Timer after(Duration delay, Function function) override;
  void offload(Function work, Function done) override;
  bool on_thread() const override { return true; }

  // Runs one posted function or timer; false when there is none.
  bool step();
  // Runs until nothing is left. A timer that renews itself for ever is a bug of the test: use
  // run_for.
  void run_until_idle();
  // Runs all that is due within `duration`, and leaves now() at its end.
  void run_for(Duration duration);
  // Runs until `predicate()` holds, asked between steps. False when it does not although nothing is
  // left, or `limit` of virtual time is over.
  template <class Predicate>
  bool run_until(Predicate predicate, Duration limit = std::chrono::hours(1)) {
    const TimePoint end = now_ + limit;
    while (!predicate()) {
      if (!step_before(end)) return false;
    }
    return true;
  }
  // Starts `task` and runs until it has ended, which it must.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    detach(store(std::move(task), &result));
    STAG_CHECK(run_until([&] { return result.has_value(); }));
    return *std::move(result);
  }

  // Functions and timers that wait to run.
  std::size_t pending() const { return ready_.size() + timers_.size(); }

 private:
  using Key = std::tuple<TimePoint, std::uint64_t, std::uint64_t>;  // when, tie-break, id

  template <class T>
  static Task<void> store(Task<T> task, std::optional<T>* result) {
    result->emplace(co_await std::move(task));
  }
  void cancel_timer(std::uint64_t id) override;
  bool step_before(TimePoint end);
  bool timer_goes_first();
  void run_first_timer();

  TimePoint now_{std::chrono::hours(1)};  // not 0: a time of 0 often means "none"
  std::optional<Random> shuffle_;
  std::uint64_t next_id_ = 1;
  std::deque<Function> ready_;
  std::map<Key, Function> timers_;
  std::unordered_map<std::uint64_t, Key> keys_;
};

}  // namespace stag::fabric
