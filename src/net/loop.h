// net: the operating system's clock, threads and sockets. Modules above use stag::Loop and value
// types; epoll stays behind the .cc files of this module.
//
// Thread: one thread runs an EpollLoop. Objects made for that loop (sockets, timers, listeners) are
// used and destroyed on that thread, before the loop. Other threads may call post(), stop() and
// on_thread() only. Work that blocks goes to the loop's own threads by offload(), or to another
// Executor by offload_to(). A loop installs no signal handler and leaves the
// signal mask of its thread as it is; the threads that it starts block all signals but faults.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"

namespace stag::net {

struct LoopOptions {
  // The threads of offload(); loops may share them. Null: the loop starts threads of its own when
  // there is work for them.
  std::shared_ptr<Executor> workers;
  // Microseconds that an idle loop polls for events before it blocks: lower latency for more CPU
  // time. Zero: the loop polls for up to 50 us while that saves more time than it costs (adaptive
  // polling, decision 0002).
  std::uint32_t busy_poll_us = 0;
};

class EpollLoop final : public Loop {
 public:
  // Until run() is called, the thread that made the loop counts as its thread. Ends the process
  // where the system has no descriptors for it: for programs that cannot do without.
  explicit EpollLoop(LoopOptions options = {});
  // The same for programs that can. Fails with TooManyOpenFiles, or with another reason why the
  // system gives no descriptors.
  static Result<std::unique_ptr<EpollLoop>, Reason> make(LoopOptions options = {});
  // Waits for offloaded work in progress; posted functions that have not run are destroyed.
  ~EpollLoop() override;
  EpollLoop(const EpollLoop&) = delete;
  EpollLoop& operator=(const EpollLoop&) = delete;

  // Runs the loop on this thread until stop().
  void run();
  // Makes run() return after the function in progress, or the next run() return at once where none
  // is in progress. A later one runs again. Thread: any.
  void stop();

  // Read once a turn, after the wait for events: within a turn the time stands still.
  TimePoint now() const override;
  void post(Function function) override;
  [[nodiscard]] Timer after(Duration delay, Function function) override;
  void offload(Function work, Function done) override;
  bool offload_to(Executor& executor, const void* client, std::uint64_t bytes, Function work,
                  Function done) override;
  bool on_thread() const override;

  // Internal: for the .cc files of net.
  struct Core;
  Core& core() { return *core_; }

 private:
  explicit EpollLoop(std::unique_ptr<Core> core);
  void cancel_timer(std::uint64_t id) override;

  std::unique_ptr<Core> core_;
};

// An EpollLoop and a thread that runs it and blocks all signals but faults.
class LoopThread {
 public:
  // Ends the process where there are no descriptors, and throws std::system_error where there is no
  // thread.
  explicit LoopThread(LoopOptions options = {});
  // Fails as EpollLoop::make() does, and with TooManyThreads.
  static Result<std::unique_ptr<LoopThread>, Reason> start(LoopOptions options = {});
  // Stops the loop and joins its thread. Objects of the loop are gone, or are destroyed by a
  // function that was posted before.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  EpollLoop& loop() { return *loop_; }

 private:
  explicit LoopThread(std::unique_ptr<EpollLoop> loop);

  std::unique_ptr<EpollLoop> loop_;
  std::thread thread_;
};

}  // namespace stag::net
