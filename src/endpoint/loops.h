// endpoint: the wiring that most programs want: threads that run loops, connections and listeners
// by address, and calls that block. It only combines rpc, its transports, the fabrics and net; a
// program with coroutines on loops of its own can do without.
#pragma once

#include <future>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/task.h"
#include "net/loop.h"

namespace stag::endpoint {

// A set of threads that run one loop each, and one pool of workers for work that blocks. Thread:
// any.
class Loops {
 public:
  // Starts `count` threads, at least 1. `busy_poll_us`: net::LoopOptions. Where the system has no
  // descriptors for them it ends the process, and without threads throws std::system_error.
  explicit Loops(std::size_t count = 1, std::uint32_t busy_poll_us = 0);
  // The same, but fails with TooManyOpenFiles or TooManyThreads.
  static Result<std::shared_ptr<Loops>, Reason> start(std::size_t count = 1,
                                                      std::uint32_t busy_poll_us = 0);
  // Stops the loops and joins their threads. Objects of the loops are gone by then.
  ~Loops() = default;

  std::size_t size() const { return threads_.size(); }
  net::EpollLoop& at(std::size_t index) const { return threads_[index]->loop(); }
  std::vector<net::EpollLoop*> all() const;

 private:
  explicit Loops(std::vector<std::unique_ptr<net::LoopThread>> threads)
      : threads_(std::move(threads)) {}

  std::vector<std::unique_ptr<net::LoopThread>> threads_;
};

// `shared`, or where that is null one loop of its own.
inline Result<std::shared_ptr<Loops>, Reason> shared_or_own(std::shared_ptr<Loops> shared) {
  if (shared == nullptr) return Loops::start();
  return shared;
}

namespace detail {
template <class T>
Task<> fulfil(Task<T> task, std::promise<T>& promise) {
  try {
    T value = co_await std::move(task);
    promise.set_value(std::move(value));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}
inline Task<> fulfil(Task<> task, std::promise<void>& promise) {
  try {
    co_await std::move(task);
    promise.set_value();
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}
// Runs the Task that `make` returns. How it ends goes to `promise`, which outlives it; as does
// std::bad_alloc, where there is no memory to begin it.
template <class T, class Make>
void run_for(std::promise<T>& promise, Make& make) noexcept {
  try {
    detach(fulfil(make(), promise));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}
template <class T>
T task_value(const Task<T>&);
}  // namespace detail

// Runs the Task that `make` returns on `loop`, blocks this thread (which is not the loop's) until
// the Task has ended, and returns its value: wait_on(loop, [&] { return client.call<READ>(args);
// }). Throws what the Task throws, and std::bad_alloc where there is no memory to begin it.
template <class Make>
auto wait_on(Loop& loop, Make make) {
  using Value = decltype(detail::task_value(make()));
  STAG_CHECK(!loop.on_thread());
  std::promise<Value> promise;
  loop.post([&] { detail::run_for(promise, make); });
  return promise.get_future().get();
}

// Runs `function` on `loop`, blocks this thread (which is not the loop's) until it has returned,
// and returns its value. Throws what `function` throws.
template <class Function>
auto run_on(Loop& loop, Function function) {
  STAG_CHECK(!loop.on_thread());
  std::packaged_task<decltype(function())()> task(std::move(function));
  loop.post([&task] { task(); });
  return task.get_future().get();
}

// wait_on(), or run_on() where `make` returns nothing, for ends, which must not go on before that
// has ended: where there is no memory to begin it, it is tried again until there is.
template <class Make>
void finish_on(Loop& loop, Make make) {
  for (;;) {
    try {
      if constexpr (std::is_void_v<decltype(make())>)
        return run_on(loop, make);
      else
        return static_cast<void>(wait_on(loop, make));
    } catch (const std::bad_alloc&) {
      std::this_thread::yield();
    }
  }
}

}  // namespace stag::endpoint
