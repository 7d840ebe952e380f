// TaskGroup: several Tasks at once, awaited together; with a window it is the "n operations in
// flight" of every bulk copy. All on one loop. The group must be joined before it is destroyed.
#pragma once

#include <cstddef>

#include "base/failure.h"
#include "base/task.h"

namespace stag {

class TaskGroup {
 public:
  TaskGroup() = default;
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup() { STAG_CHECK(running_ == 0); }

  // Starts `task` now. It counts until it has ended, also by an exception, which is traced.
  void add(Task<void> task) { detach(run(this, std::move(task))); }
  std::size_t running() const { return running_; }

  // Awaits until at most `count` tasks are still running.
  auto at_most(std::size_t count) {
    struct Awaiter {
      TaskGroup* group;
      std::size_t count;
      bool await_ready() const { return group->running_ <= count; }
      void await_suspend(std::coroutine_handle<> waiter) {
        STAG_CHECK(!group->waiter_);
        group->waiter_ = waiter;
        group->wanted_ = count;
      }
      void await_resume() const {}
    };
    return Awaiter{this, count};
  }
  auto join() { return at_most(0); }

 private:
  static Task<void> run(TaskGroup* group, Task<void> task) {
    ++group->running_;
    try {
      co_await std::move(task);
    } catch (...) {
      trace_exception(Reason::TaskFailed);
    }
    --group->running_;
    if (group->waiter_ && group->running_ <= group->wanted_)
      std::exchange(group->waiter_, {}).resume();
  }

  std::size_t running_ = 0;
  std::size_t wanted_ = 0;
  std::coroutine_handle<> waiter_;
};

}  // namespace stag
