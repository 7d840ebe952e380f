// Eventual<T>: a value that is there already, or the Task that will yield it. A function that can
// mostly answer at once returns the value itself, which costs no coroutine; where it has to wait it
// is a coroutine of this type, or returns a Task. Awaited once, on the caller's loop.
//
// What is ready() has happened when the function returns, awaited or not; anything else begins when
// it is awaited.
#pragma once

#include <coroutine>
#include <utility>
#include <variant>

#include "base/task.h"

namespace stag {

template <class T>
class [[nodiscard]] Eventual {
 public:
  using promise_type = detail::Promise<T>;

  Eventual(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // A value made in place of `arguments`.
  template <class... Arguments>
  explicit Eventual(std::in_place_t, Arguments&&... arguments)
      : state_(std::in_place_index<0>, std::forward<Arguments>(arguments)...) {}
  Eventual(Task<T> task) : state_(std::in_place_index<1>, std::move(task)) {}

  // Whether the value is there already, so that to await it does not suspend.
  bool ready() const { return state_.index() == 0; }
  // The value of one that is ready().
  T& value() { return STAG_CHECK(ready()), *std::get_if<0>(&state_); }

  // Yields a T.
  auto operator co_await() && {
    struct Awaiter {
      Eventual& eventual;
      bool await_ready() const { return eventual.ready(); }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) {
        return eventual.task().operator co_await().await_suspend(waiter);
      }
      T await_resume() {
        if (eventual.ready()) return std::move(eventual.value());
        return eventual.task().operator co_await().await_resume();
      }
    };
    return Awaiter{*this};
  }

 private:
  Task<T>&& task() { return std::move(*std::get_if<1>(&state_)); }

  std::variant<T, Task<T>> state_;
};

}  // namespace stag
