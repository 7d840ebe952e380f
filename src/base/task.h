// Task<T>: a coroutine that runs when awaited and belongs to one Loop.
//
// Life. A Task is lazy and move-only: the coroutine begins when the Task is awaited, started or
// detached, at most once. The Task owns the coroutine's frame, so whatever the frame refers to must
// outlive the Task. A Task must not be destroyed while it is suspended on a fabric operation: to
// cancel means to pull a token (base/cancel.h), not to end the frame.
//
// Thread. A Task is created, resumed and destroyed on the thread of one Loop.
//
// Errors. An exception that leaves a coroutine is thrown again where its Task is awaited, or where
// result() is called. An exception out of a detached Task (detach(), TaskGroup) reaches no caller:
// it is traced as Reason::TaskFailed, and the Task has ended. Code that relies on the last steps of
// a detached Task puts them into a destructor, or catches inside the Task (decision 0014).
//
// Memory. Frames of up to 4 KiB come from a per-thread free list, so that a steady flow of Tasks
// allocates nothing. g++ 12 turns symmetric transfer into a tail call only with
// -foptimize-sibling-calls; the build sets that flag.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace stag {

template <class T = void>
class Task;

// Receives the end of a Task that ordinary code (no coroutine) has started: see Task::start().
class TaskEnd {
 public:
  // Called once, on the loop's thread, after the Task has ended. May destroy the Task.
  virtual void on_task_end() noexcept = 0;

 protected:
  ~TaskEnd() = default;
};

namespace detail {

// Each thread keeps frames by size, in steps of 64 bytes up to 4 KiB; larger frames are rare and
// come from the heap.
struct FreeFrame {
  FreeFrame* next;
};
struct FrameList {
  static constexpr std::size_t kStep = 64;
  static constexpr std::size_t kClasses = 64;
  static constexpr std::size_t kKept = 256;
  FreeFrame* head = nullptr;
  std::size_t count = 0;
};
// Zero-initialised at compile time, so that no call has to check whether the lists exist.
extern constinit thread_local FrameList frame_lists[FrameList::kClasses];

void* new_frame(std::size_t size);
void drop_frame(void* frame) noexcept;

inline void* allocate_frame(std::size_t size) {
  const std::size_t c = (size - 1) / FrameList::kStep;
  if (c >= FrameList::kClasses || frame_lists[c].head == nullptr) return new_frame(size);
  --frame_lists[c].count;
  return std::exchange(frame_lists[c].head, frame_lists[c].head->next);
}

inline void free_frame(void* frame, std::size_t size) noexcept {
  const std::size_t c = (size - 1) / FrameList::kStep;
  if (c >= FrameList::kClasses || frame_lists[c].count >= FrameList::kKept)
    return drop_frame(frame);
  ++frame_lists[c].count;
  frame_lists[c].head = ::new (frame) FreeFrame{frame_lists[c].head};
}

// Throws the exception that ended a Task which has no result.
[[noreturn]] void throw_again(const std::exception_ptr& failure);
void trace_lost(std::exception_ptr failure) noexcept;

struct PromiseBase {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) { free_frame(frame, size); }

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept {
      PromiseBase& promise = done.promise();
      if (promise.continuation) return promise.continuation;
      if (promise.detached) {
        if (promise.failure) trace_lost(std::move(promise.failure));
        done.destroy();
      } else {
        promise.end->on_task_end();
      }
      return std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { failure = std::current_exception(); }

  std::coroutine_handle<> continuation;
  std::exception_ptr failure;
  TaskEnd* end = nullptr;  // the argument of Task::start()
  bool detached = false;   // never awaited: the frame destroys itself when the coroutine ends
};

template <class T>
struct Promise : PromiseBase {
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& value) {
    result.emplace(std::forward<U>(value));
  }
  T& value() {
    if (!result.has_value()) throw_again(failure);
    return *result;
  }
  T take() { return std::move(value()); }
  std::optional<T> result;
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {
    if (failure) throw_again(failure);
  }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  // Holds no coroutine; such a Task must not be awaited, started or detached.
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

  // See stag::detach().
  void detach() && requires std::is_void_v<T> {
    STAG_CHECK(handle_);
    const Handle handle = std::exchange(handle_, {});
    handle.promise().detached = true;
    handle.resume();
  }

  // Runs the coroutine for a caller that is no coroutine. `end` outlives the Task; its
  // on_task_end() is called when the coroutine has ended, possibly before start() returns. From
  // then on result() may be called and the Task may be destroyed.
  void start(TaskEnd& end) {
    STAG_CHECK(handle_);
    handle_.promise().end = &end;
    handle_.resume();
  }
  // The value of a Task that was started and has ended; throws the exception that ended it.
  auto& result() requires(!std::is_void_v<T>) { return handle_.promise().value(); }
  // Gives the coroutine away, which has not begun: the caller resumes and destroys it.
  Handle release() && { return std::exchange(handle_, {}); }
  // Whether this Task holds a coroutine.
  explicit operator bool() const { return static_cast<bool>(handle_); }

  // co_await std::move(task): runs the coroutine and yields its value, or throws its exception.
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
    STAG_CHECK(handle_);
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
}  // namespace detail

// Starts `task` now, on this thread; its frame destroys itself when the coroutine ends. The caller
// makes sure that what the coroutine refers to outlives it (TaskGroup in base/task_group.h waits
// for its tasks).
inline void detach(Task<void> task) {
  std::move(task).detach();
}

}  // namespace stag
