// Operation<T>: the outcome of a FileSystem's operation, now or later. A store that can answer at
// once returns the outcome itself, which costs no coroutine; a store that waits is a coroutine of
// this type, or returns a Task. An Operation is awaited once, on the caller's loop:
//
//   const Outcome<Attributes> found = co_await store.attributes(caller, handle);
//
// An operation that is ready() has happened when the call returns, awaited or not; any other one
// begins when it is awaited.
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "base/task.h"
#include "vfs/status.h"

namespace stag::vfs {

template <class T>
class [[nodiscard]] Operation {
 public:
  using promise_type = stag::detail::Promise<Outcome<T>>;

  Operation(Outcome<T> outcome) : outcome_(std::move(outcome)) {}
  Operation(Failure<Status> failure) : outcome_(std::move(failure)) {}
  Operation(T value) : outcome_(std::in_place, std::move(value)) {}
  Operation(Task<Outcome<T>> task) : task_(std::move(task)) {}

  // Whether the outcome is there already, so that to await it does not suspend.
  bool ready() const { return outcome_.has_value(); }

  // Yields an Outcome<T>.
  auto operator co_await() && {
    struct Awaiter {
      Operation& operation;
      bool await_ready() const { return operation.ready(); }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) {
        return std::move(operation.task_).operator co_await().await_suspend(waiter);
      }
      Outcome<T> await_resume() {
        if (operation.outcome_) return *std::move(operation.outcome_);
        return std::move(operation.task_).operator co_await().await_resume();
      }
    };
    return Awaiter{*this};
  }

 private:
  std::optional<Outcome<T>> outcome_;
  Task<Outcome<T>> task_;
};

}  // namespace stag::vfs
