// endpoint: the wiring most programs want done for them. Threads with a loop each, connections and
// listeners by address, and calls that simply block. Nothing here is needed by who writes
// coroutines on loops of his own: endpoint only puts rpc, its transports, the fabrics and net
// together.
#pragma once

#include <future>
#include <memory>
#include <vector>

#include "base/task.h"
#include "net/loop.h"

namespace stag::endpoint {

// A set of threads, each running one loop, and one pool of workers for what blocks. Thread-safe.
class Loops {
 public:
  // `count` is at least 1.
  explicit Loops(std::size_t count = 1, std::uint32_t busy_poll_us = 0);
  // Stops and joins them all; what lives on them must be gone.
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

// Runs the Task that `make` returns on `loop` and blocks this thread, which is no loop's, until it
// has ended: wait_on(loop, [&] { return client.call<READ>(args); }).
template <class Make>
auto wait_on(Loop& loop, Make make) {
  using Value = decltype(detail::task_value(make()));
  STAG_CHECK(!loop.on_thread());
  std::promise<Value> promise;
  loop.post([&] { detach(detail::fulfil(make(), promise)); });
  return promise.get_future().get();
}

// Runs `function` on `loop` and blocks until it has returned.
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
