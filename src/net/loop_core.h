// The inside of AsioLoop, and the only header that includes Asio; included by .cc files of net.
#pragma once

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#ifndef ASIO_NO_DEPRECATED
#define ASIO_NO_DEPRECATED
#endif
#include <asio/detail/handler_alloc_helpers.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "net/loop.h"
#include "net/patience.h"
#include "net/timer_heap.h"
#include "net/worker_pool.h"

namespace stag::net {

struct AsioLoop::Core {
  explicit Core(LoopOptions options);

  void drop_functions();
  void post(Function function);
  void run_posted();
  void arm(TimePoint when);
  void run_timers();
  void run();
  // Whether an event came within the loop's patience.
  bool look_for_events();
  void offload(Function work, Function done);

  Patience patience;
  std::shared_ptr<WorkerPool> workers;
  // One thread runs it, which lets Asio skip wake-ups between threads.
  asio::io_context io{1};
  std::atomic<std::thread::id> thread{std::this_thread::get_id()};

  std::mutex mutex;
  std::vector<Function> posted;  // Guarded by mutex.
  bool run_scheduled = false;    // Guarded by mutex.
  std::size_t offloads = 0;      // Guarded by mutex.
  std::condition_variable offload_ended;
  std::vector<Function> running;  // Of the loop's thread; keeps its capacity.

  TimerHeap timers;
  asio::steady_timer wakeup{io};
  std::optional<TimePoint> armed;
};

}  // namespace stag::net
