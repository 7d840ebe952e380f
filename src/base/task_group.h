// TaskGroup: runs several Tasks at once and awaits them together. With at_most(n) it is the window
// of "n operations in flight" of a bulk copy.
//
// Thread: the tasks' loop. Ownership: a task's frame destroys itself when the task ends; what its
// frame refers to outlives the group. The group must be joined before it is destroyed.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/task.h"

namespace stag {

class TaskGroup {
 public:
  TaskGroup() = default;
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup() { STAG_CHECK(running_ == 0); }

  // Starts `task` now, on this thread. The task counts as running until it ends; an exception that
  // ends it is traced as Reason::TaskFailed.
  void add(Task<void> task) { detach(run(this, std::move(task))); }
  // Tasks that were added and have not ended.
  std::size_t running() const { return running_; }

  // co_await at_most(n): suspends until at most `count` tasks are running. One coroutine awaits the
  // group at a time.
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
  // co_await join(): suspends until every task has ended.
  auto join() { return at_most(0); }

 private:
  static Task<void> run(TaskGroup* group, Task<void> task) {
    ++group->running_;
    try {
      co_await std::move(task);
    } catch (...) {
      detail::trace_lost(std::current_exception());
    }
    --group->running_;
    if (group->waiter_ && group->running_ <= group->wanted_)
      std::exchange(group->waiter_, {}).resume();
  }

  std::size_t running_ = 0;
  std::size_t wanted_ = 0;
  std::coroutine_handle<> waiter_;
};

// Awaits `work`, which adds tasks to `group`, and then every task of the group; yields what `work`
// has yielded, or throws what it has thrown.
template <class T>
Task<T> joined(TaskGroup& group, Task<T> work) {
  std::optional<T> result;
  std::exception_ptr exception;
  try {
    result.emplace(co_await std::move(work));
  } catch (...) {
    exception = std::current_exception();
  }
  co_await group.join();
  if (exception) std::rethrow_exception(exception);
  co_return *std::move(result);
}

}  // namespace stag
