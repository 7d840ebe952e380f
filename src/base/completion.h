// Completion<T>: the bridge from a callback to a coroutine. One side awaits, the other completes,
// once, on the same loop.
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "base/check.h"

namespace stag {

template <class T>
class Completion {
 public:
  Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  bool completed() const { return value_.has_value(); }

  // Resumes the waiter before it returns; the waiter may destroy this object.
  void complete(T value) {
    STAG_CHECK(!value_.has_value());
    value_.emplace(std::move(value));
    if (waiter_) std::exchange(waiter_, {}).resume();
  }

  auto operator co_await() {
    struct Awaiter {
      Completion* completion;
      bool await_ready() const { return completion->value_.has_value(); }
      void await_suspend(std::coroutine_handle<> waiter) {
        STAG_CHECK(!completion->waiter_);
        completion->waiter_ = waiter;
      }
      T await_resume() { return *std::move(completion->value_); }
    };
    return Awaiter{this};
  }

 private:
  std::optional<T> value_;
  std::coroutine_handle<> waiter_;
};

}  // namespace stag
