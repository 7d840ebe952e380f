// Loop: the interface through which everything else gets time, timers and order. One thread runs a
// Loop and all objects that belong to it. net::EpollLoop implements it on epoll, fabric/sim in
// virtual time. Protocol code starts no thread and reads no clock in any other way, so that it runs
// in virtual time as well. Stores read the wall clock, for the times of files.
//
// Thread: functions without a remark are called on the loop's thread.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/executor.h"
#include "base/unique_function.h"

namespace stag {

using Duration = std::chrono::nanoseconds;
// Monotonic time of one Loop, in nanoseconds from an arbitrary origin.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Loop;

// Owns a pending timer: when it is destroyed or cancelled first, the timer's function never runs.
// Thread: the loop's. The Loop outlives it.
class Timer {
 public:
  Timer() = default;
  Timer(Loop* loop, std::uint64_t id) : loop_(loop), id_(id) {}
  Timer(Timer&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), id_(other.id_) {}
  Timer& operator=(Timer&& other) noexcept {
    cancel();
    loop_ = std::exchange(other.loop_, nullptr);
    id_ = other.id_;
    return *this;
  }
  ~Timer() { cancel(); }
  // Idempotent; no effect after the function has run.
  void cancel();

 private:
  Loop* loop_ = nullptr;
  std::uint64_t id_ = 0;
};

class Loop {
 public:
  using Function = UniqueFunction<void()>;
  virtual ~Loop() = default;

  // The loop's time; an implementation may let it stand still within a turn.
  virtual TimePoint now() const = 0;
  // Runs `function` on the loop's thread in a later turn, never inside post(). Functions posted by
  // one thread run in their order. Thread: any.
  virtual void post(Function function) = 0;
  // Runs `function` on the loop's thread once `delay` has passed, unless the Timer is gone by then.
  [[nodiscard]] virtual Timer after(Duration delay, Function function) = 0;
  // Runs `work` on a thread where blocking is allowed, then `done` on the loop's thread. In virtual
  // time `work` runs inside this call.
  virtual void offload(Function work, Function done) = 0;
  // The same on a thread of `executor`, as a job of `client` that keeps `bytes` of memory
  // (Executor::Job). False when the queue of `executor` is full: neither function runs. If the
  // executor gives the job up later, only `done` runs.
  virtual bool offload_to(Executor& executor, const void* client, std::uint64_t bytes,
                          Function work, Function done) {
    const auto deliver = [](void* loop, Function then) {
      static_cast<Loop*>(loop)->post(std::move(then));
    };
    return executor.submit({std::move(work), std::move(done), deliver, this, client, bytes});
  }
  // Whether the caller is on the loop's thread.
  virtual bool on_thread() const = 0;

 private:
  friend class Timer;
  // `id` may name a timer that has fired already.
  virtual void cancel_timer(std::uint64_t id) = 0;
};

inline void Timer::cancel() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->cancel_timer(id_);
}

// co_await sleep_for(loop, 10ms): suspends for `delay` and resumes on the loop.
inline auto sleep_for(Loop& loop, Duration delay) {
  struct Awaiter {
    Loop& loop;
    Duration delay;
    Timer timer;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      timer = loop.after(delay, [waiter] { waiter.resume(); });
    }
    void await_resume() const {}
  };
  return Awaiter{loop, delay, {}};
}

// co_await resume_on(loop): continues on the loop's thread in a later turn. A coroutine of that
// loop yields this way.
inline auto resume_on(Loop& loop) {
  struct Awaiter {
    Loop& loop;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      loop.post([waiter] { waiter.resume(); });
    }
    void await_resume() const {}
  };
  return Awaiter{loop};
}

// co_await offloaded(loop, [&] { return blocking_call(); }): runs `work` by Loop::offload() and
// yields its result, if any, back on the loop. `work` may use the caller's frame, which is
// suspended meanwhile. An exception of `work` is thrown where the result is awaited.
template <class Work>
auto offloaded(Loop& loop, Work work) {
  using Value = decltype(work());
  constexpr bool kNothing = std::is_void_v<Value>;
  struct Awaiter {
    Loop& loop;
    Work work;
    std::optional<std::conditional_t<kNothing, bool, Value>> value;
    std::exception_ptr failure;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      loop.offload([this] { run(); }, [waiter] { waiter.resume(); });
    }
    void run() noexcept {
      try {
        if constexpr (kNothing) {
          work();
        } else {
          value.emplace(work());
        }
      } catch (...) {
        failure = std::current_exception();
      }
    }
    Value await_resume() {
      if (failure) std::rethrow_exception(std::move(failure));
      if constexpr (!kNothing) return *std::move(value);
    }
  };
  return Awaiter{loop, std::move(work), std::nullopt, {}};
}

// co_await offloaded_to(executor, client, loop, work, otherwise, bytes): the same on a thread of
// `executor`; null: on the threads of Loop::offload(). Yields `otherwise` when the Executor refuses
// the job or gives it up, or when `work` throws std::bad_alloc. `bytes`: memory that the caller
// keeps meanwhile.
template <class Work>
auto offloaded_to(Executor* executor, const void* client, Loop& loop, Work work,
                  decltype(work()) otherwise, std::uint64_t bytes = 0) {
  struct Awaiter {
    Executor* executor;
    const void* client;
    std::uint64_t bytes;
    Loop& loop;
    Work work;
    decltype(work()) value;
    std::exception_ptr failure;
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) {
      const auto resume = [waiter] { waiter.resume(); };
      if (executor != nullptr)
        return loop.offload_to(
            *executor, client, bytes, [this] { run(); }, resume);
      loop.offload([this] { run(); }, resume);
      return true;
    }
    void run() noexcept {
      try {
        value = work();
      } catch (const std::bad_alloc&) {
        return;  // `value` is still `otherwise`.
      } catch (...) {
        failure = std::current_exception();
      }
    }
    decltype(work()) await_resume() {
      if (failure) std::rethrow_exception(std::move(failure));
      return std::move(value);
    }
  };
  return Awaiter{executor, client, bytes, loop, std::move(work), std::move(otherwise), {}};
}

}  // namespace stag
