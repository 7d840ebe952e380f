// Loop: the one place where time, threads and order come from. One thread runs a Loop and
// everything that belongs to it; net implements it on epoll, fabric/sim in virtual time. Nobody
// else starts a thread or reads a clock.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/executor.h"
#include "base/unique_function.h"

namespace stag {

using Duration = std::chrono::nanoseconds;
// Monotonic time of a Loop; its zero means nothing.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Loop;

// A pending timer; destroying or cancelling it means its function never runs. Belongs to the loop's
// thread.
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
  void cancel();

 private:
  Loop* loop_ = nullptr;
  std::uint64_t id_ = 0;
};

class Loop {
 public:
  using Function = UniqueFunction<void()>;
  virtual ~Loop() = default;

  virtual TimePoint now() const = 0;
  // Runs `function` on the loop's thread, never inside post() itself. Callable from any thread;
  // order is kept.
  virtual void post(Function function) = 0;
  // Runs `function` on the loop's thread once `delay` has passed. Call from the loop's thread.
  [[nodiscard]] virtual Timer after(Duration delay, Function function) = 0;
  // Runs `work` where blocking is allowed, then `done` on the loop's thread. In virtual time `work`
  // runs inline.
  virtual void offload(Function work, Function done) = 0;
  // The same on a thread of `executor`, which counts it as a job of `client`. False when it has no
  // room: neither function runs. When it gives the job back later, only `done` runs.
  virtual bool offload_to(Executor& executor, const void* client, Function work, Function done) {
    const auto deliver = [](void* loop, Function then) {
      static_cast<Loop*>(loop)->post(std::move(then));
    };
    return executor.submit({std::move(work), std::move(done), deliver, this, client});
  }
  // Whether the caller is on the loop's thread.
  virtual bool on_thread() const = 0;

 private:
  friend class Timer;
  // The timer may have fired already.
  virtual void cancel_timer(std::uint64_t id) = 0;
};

inline void Timer::cancel() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->cancel_timer(id_);
}

// co_await sleep_for(loop, 10ms): resumes on the loop.
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

// co_await resume_on(loop): continues on the loop's thread in a later turn; also the way to yield.
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

// co_await offloaded(loop, [&] { return blocking_call(); }): the result, back on the loop. `work`
// may use the caller's frame: it is suspended meanwhile. What `work` throws is thrown there, too.
template <class Work>
auto offloaded(Loop& loop, Work work) {
  using Value = decltype(work());
  struct Awaiter {
    Loop& loop;
    Work work;
    std::optional<Value> value;
    std::exception_ptr failure;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      loop.offload([this] { run(); }, [waiter] { waiter.resume(); });
    }
    void run() noexcept {
      try {
        value.emplace(work());
      } catch (...) {
        failure = std::current_exception();
      }
    }
    Value await_resume() {
      if (failure) std::rethrow_exception(std::move(failure));
      return *std::move(value);
    }
  };
  return Awaiter{loop, std::move(work), std::nullopt, {}};
}

// co_await offloaded_to(executor, client, loop, work, otherwise): the same by an Executor; null is
// the loop's own threads. `otherwise` is the result when the Executor does not do the work, or when
// there is no memory for it.
template <class Work>
auto offloaded_to(Executor* executor, const void* client, Loop& loop, Work work,
                  decltype(work()) otherwise) {
  struct Awaiter {
    Executor* executor;
    const void* client;
    Loop& loop;
    Work work;
    decltype(work()) value;
    std::exception_ptr failure;
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) {
      const auto resume = [waiter] { waiter.resume(); };
      if (executor != nullptr)
        return loop.offload_to(
            *executor, client, [this] { run(); }, resume);
      loop.offload([this] { run(); }, resume);
      return true;
    }
    void run() noexcept {
      try {
        value = work();
      } catch (const std::bad_alloc&) {
        return;  // The value is still the other one.
      } catch (...) {
        failure = std::current_exception();
      }
    }
    decltype(work()) await_resume() {
      if (failure) std::rethrow_exception(std::move(failure));
      return std::move(value);
    }
  };
  return Awaiter{executor, client, loop, std::move(work), std::move(otherwise), {}};
}

}  // namespace stag
