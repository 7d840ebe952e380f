// Task<T>: a coroutine that runs when awaited and belongs to one Loop.
//
// Lazy, move-only, resumed on its loop's thread only. A Task is never destroyed while it is
// suspended on a fabric operation: cancelling is a token (base/cancel.h), not the end of the frame.
// Frames come from a per-thread free list. g++ 12 turns symmetric transfer into a tail call only
// with -foptimize-sibling-calls; the build sets it.
#pragma once

#include <coroutine>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/check.h"

namespace stag {

template <class T = void>
class Task;

namespace detail {

void* allocate_frame(std::size_t size);
void free_frame(void* frame, std::size_t size) noexcept;

struct PromiseBase {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) { free_frame(frame, size); }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept {
      return done.promise().continuation;
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  // Nothing of ours throws; an exception out of a coroutine is a bug like any other.
  [[noreturn]] void unhandled_exception() {
    check_failed("no exception leaves a Task", __FILE__, __LINE__);
  }

  std::coroutine_handle<> continuation = std::noop_coroutine();
};

template <class T>
struct Promise : PromiseBase {
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& value) {
    result.emplace(std::forward<U>(value));
  }
  T take() { return CHECK(result.has_value()), *std::move(result); }
  std::optional<T> result;
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  auto operator co_await() && {
    struct Awaiter {
      Handle handle;
      bool await_ready() const { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) {
        handle.promise().continuation = waiter;
        return handle;
      }
      T await_resume() { return handle.promise().take(); }
    };
    CHECK(handle_);
    return Awaiter{handle_};
  }

 private:
  Handle handle_;
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

// Runs at once and frees itself at its end.
struct Detached {
  struct promise_type {
    static void* operator new(std::size_t size) { return allocate_frame(size); }
    static void operator delete(void* frame, std::size_t size) { free_frame(frame, size); }
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    [[noreturn]] void unhandled_exception() {
      check_failed("no exception leaves a Task", __FILE__, __LINE__);
    }
  };
};
inline Detached run_detached(Task<void> task) {
  co_await std::move(task);
}
}  // namespace detail

// Starts `task` now, on this thread; it owns itself until it ends. Whoever detaches makes sure that
// what the task refers to outlives it (TaskGroup in base/task_group.h waits for its tasks).
inline void detach(Task<void> task) {
  detail::run_detached(std::move(task));
}

}  // namespace stag
