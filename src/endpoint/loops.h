// endpoint: the wiring that most programs want: threads that run loops, connections and listeners
// by address, and calls that block. It only combines rpc, its transports, the fabrics and net; a
// program with coroutines on loops of its own can do without.
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "base/task.h"
#include "net/loop.h"

namespace stag::endpoint {

// A set of threads that run one loop each, and one pool of workers for work that blocks. Thread:
// any.
class Loops {
 public:
  // Starts `count` threads, at least 1. `busy_poll_us`: net::LoopOptions.
  explicit Loops(std::size_t count = 1, std::uint32_t busy_poll_us = 0);
  // Stops the loops and joins their threads. Objects of the loops are gone by then.
  ~Loops() = default;

  std::size_t size() const { return threads_.size(); }
  net::EpollLoop& at(std::size_t index) const { return threads_[index]->loop(); }
  std::vector<net::EpollLoop*> all() const;

 private:
  std::vector<std::unique_ptr<net::LoopThread>> threads_;
};

namespace detail {
template <class T>
Task<> fulfil(Task<T> task, std::promise<T>& promise) {
  T value = co_await std::move(task);
  promise.set_value(std::move(value));
}
inline Task<> fulfil(Task<> task, std::promise<void>& promise) {
  co_await std::move(task);
  promise.set_value();
}
template <class T>
T task_value(const Task<T>&);
}  // namespace detail

// Runs the Task that `make` returns on `loop`, blocks this thread (which is not the loop's) until
// the Task has ended, and returns its value: wait_on(loop, [&] { return client.call<READ>(args);
// }). The Task throws nothing.
template <class Make>
auto wait_on(Loop& loop, Make make) {
  using Value = decltype(detail::task_value(make()));
  STAG_CHECK(!loop.on_thread());
  std::promise<Value> promise;
  loop.post([&] { detach(detail::fulfil(make(), promise)); });
  return promise.get_future().get();
}

// Runs `function` on `loop`, blocks this thread (which is not the loop's) until it has returned,
// and returns its value.
template <class Function>
auto run_on(Loop& loop, Function function) {
  STAG_CHECK(!loop.on_thread());
  std::promise<decltype(function())> promise;
  loop.post([&] {
    if constexpr (std::is_void_v<decltype(function())>) {
      function();
      promise.set_value();
    } else {
      promise.set_value(function());
    }
  });
  return promise.get_future().get();
}

}  // namespace stag::endpoint
