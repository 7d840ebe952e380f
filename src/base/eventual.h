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
  // What `convert` makes of what `task` yields, T(U&, Context&), without a coroutine between the
  // two. `context` lives until the value is there.
  template <auto convert, class U, class Context>
  static Eventual converted(Task<U> task, Context& context) {
    return Eventual(Converted(std::move(task).release(), &context,
                              [](detail::PromiseBase& promise, void* to) -> T {
                                return convert(static_cast<detail::Promise<U>&>(promise).value(),
                                               *static_cast<Context*>(to));
                              }));
  }

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
        if (Converted* converted = std::get_if<2>(&eventual.state_))
          return converted->start(waiter);
        return eventual.task().operator co_await().await_suspend(waiter);
      }
      T await_resume() {
        if (eventual.ready()) return std::move(eventual.value());
        if (Converted* converted = std::get_if<2>(&eventual.state_)) return converted->finish();
        return eventual.task().operator co_await().await_resume();
      }
    };
    return Awaiter{*this};
  }

 private:
  // A Task of something else, and what makes a T of that.
  class Converted {
   public:
    using Convert = T (*)(detail::PromiseBase&, void* context);
    template <class U>
    Converted(std::coroutine_handle<detail::Promise<U>> task, void* context, Convert convert)
        : task_(task), promise_(&task.promise()), context_(context), convert_(convert) {}
    Converted(Converted&& other) noexcept
        : task_(std::exchange(other.task_, {})),
          promise_(other.promise_),
          context_(other.context_),
          convert_(other.convert_) {}
    ~Converted() {
      if (task_) task_.destroy();
    }
    std::coroutine_handle<> start(std::coroutine_handle<> waiter) {
      promise_->continuation = waiter;
      return task_;
    }
    T finish() { return convert_(*promise_, context_); }

   private:
    std::coroutine_handle<> task_;
    detail::PromiseBase* promise_;
    void* context_;
    Convert convert_;
  };

  explicit Eventual(Converted converted) : state_(std::in_place_index<2>, std::move(converted)) {}
  Task<T>&& task() { return std::move(*std::get_if<1>(&state_)); }

  std::variant<T, Task<T>, Converted> state_;
};

}  // namespace stag
