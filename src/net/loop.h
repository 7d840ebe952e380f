// net: where the project meets the operating system's clock, threads and sockets. Everything above
// sees stag::Loop and value types; epoll stays behind this module's .cc files.
//
// An EpollLoop is run by one thread, and everything made for that loop (sockets, timers, listeners)
// is used and destroyed on that thread, before the loop. Only post(), stop() and on_thread() may be
// called from elsewhere. What blocks goes to a WorkerPool by offload(), or to
// another Executor by offload_to(). No signal state is touched
// unless a SignalWatch (net/signals.h) is made.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "base/loop.h"

namespace stag::net {

struct LoopOptions {
  // Where offload() runs; may be shared by loops. Null: a WorkerPool of the default size of its
  // own.
  std::shared_ptr<Executor> workers;
  // How long an idle loop keeps asking for events before it sleeps, in microseconds. Buys latency
  // with CPU time. Zero: a little while, as long as that saves more than it costs
  // (net/spin_policy.h).
  std::uint32_t busy_poll_us = 0;
};

class EpollLoop final : public Loop {
 public:
  // Until run() is called the loop counts the thread that made it as its own.
  explicit EpollLoop(LoopOptions options = {});
  // Waits for offloaded work under way; what was posted and not yet run is dropped.
  ~EpollLoop() override;
  EpollLoop(const EpollLoop&) = delete;
  EpollLoop& operator=(const EpollLoop&) = delete;

  // Serves events on this thread until stop().
  void run();
  // Makes run() return after the function in progress; from any thread. Sticky: a run() that comes
  // later returns at once.
  void stop();

  // The clock is read once a turn, after the wait for events: within a turn time stands still.
  TimePoint now() const override;
  void post(Function function) override;
  [[nodiscard]] Timer after(Duration delay, Function function) override;
  void offload(Function work, Function done) override;
  bool offload_to(Executor& executor, const void* client, Function work, Function done) override;
  bool on_thread() const override;

  // For the .cc files of net only.
  struct Core;
  Core& core() { return *core_; }

 private:
  void cancel_timer(std::uint64_t id) override;

  std::unique_ptr<Core> core_;
};

// A loop on a thread of its own; the thread blocks signals.
class LoopThread {
 public:
  explicit LoopThread(LoopOptions options = {});
  // Stops the loop and joins its thread. Objects of the loop must be gone (or be destroyed by a
  // function posted before).
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  EpollLoop& loop() { return *loop_; }

 private:
  std::unique_ptr<EpollLoop> loop_;
  std::thread thread_;
};

}  // namespace stag::net
