// The inside of EpollLoop; included by .cc files of net.
//
// A turn: wait for readiness, tell the descriptors, run what was posted, run the timers that are
// due. Descriptors are registered once, edge-triggered, so that a wait is the turn's only system
// call of the loop itself.
//
// Where several descriptors are to be told, those come first whose owners have used the least time
// lately (fair_turns.h); and when telling has taken a slice of time, the others wait for the next
// turn, which finds out first who else has become ready. So a connection that asks for little waits
// for one slice of one other, however many others ask for much.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "net/fair_turns.h"
#include "net/loop.h"
#include "net/spin_policy.h"
#include "net/timer_heap.h"
#include "net/worker_pool.h"

namespace stag::net {

// Is told what epoll says about one descriptor.
class Watched {
 public:
  // Each only when the event is there; the first may destroy this, the second does not come then.
  virtual void on_readable(std::uint32_t events) = 0;
  virtual void on_writable(std::uint32_t events) = 0;
  // A waiting reader may try to read without an event.
  virtual void try_reading() = 0;

  // What telling it takes is put down here; never null.
  std::shared_ptr<Usage> usage = std::make_shared<Usage>();

 protected:
  virtual ~Watched() = default;

 private:
  friend struct EpollLoop::Core;
  std::uint32_t due_ = 0;  // events that it is to be told of; if any, it is in a list of the loop
};

struct EpollLoop::Core {
  static Result<std::unique_ptr<Core>, Reason> make(LoopOptions options);
  // By make(), with the loop's descriptors.
  Core(LoopOptions options, UniqueFd epoll, UniqueFd wakeup);

  // Whether the system has room for one more.
  bool watch(int fd, Watched& watched);
  void unwatch(int fd, Watched& watched);
  // Tells `watched` of nothing that has happened so far.
  void forget(Watched& watched);
  // Tells `watched` of `events` in the next turn.
  void requeue_event(Watched& watched, std::uint32_t events);
  // A read has brought bytes from `watched`.
  void has_read(Watched& watched) {
    if (latest_ != &watched) latest_since_ = turn_began_;
    latest_ = &watched;
    read_ = true;
  }

  // Whether others are to be told in this turn, too.
  bool crowded() const { return crowded_; }

  void post(Function function);
  bool offload(Executor& executor, Executor::Job&& job);
  void run();
  void stop();
  TimePoint now() const;
  void drop_functions();

  SpinPolicy spin_policy;
  SharedUsage usage;  // by client address
  std::shared_ptr<Executor> workers;
  std::atomic<std::thread::id> thread{std::this_thread::get_id()};
  TimerHeap timers;

 private:
  // More events are found by the next wait.
  static constexpr std::size_t kEventsPerWait = 128;
  // Telling takes no longer before the loop looks who else is ready.
  static constexpr Duration kSlice = std::chrono::microseconds(50);
  // And so much longer for each that waits, so that to look at all of them stays a small part.
  static constexpr Duration kSlicePerWaiting = std::chrono::nanoseconds(100);
  // One descriptor that has brought everything for so long is where to read first.
  static constexpr Duration kSettled = 4 * kSlice;
  // How often a loop that spins reads the latest descriptor for each question to epoll.
  static constexpr int kTries = 3;
  // Before each: a read that finds nothing costs as much as one that finds something, and what
  // comes a little later comes with more behind it.
  static constexpr Duration kBeforeTry = std::chrono::nanoseconds(500);

  // What to do before the next wait, as far as it is known.
  bool has_work();
  void turn();
  void wait();
  // Polls for as long as spin_policy has it. Whether anything came.
  bool spin_poll();
  bool may_read_first() const;
  bool try_latest();
  void sleep();
  std::optional<TimePoint> wake_time();
  bool poll(int timeout_ms);
  void make_room(std::size_t count);
  void collect();
  void tell_due();
  void tell_in_order();
  void tell_only();
  void tell(Watched& watched);
  // Runs one function of a user of the loop. What it throws ends it and nothing else (decision
  // 0014).
  template <class F>
  static void call(F&& function) noexcept;
  void run_posted();
  void run_timers();
  // With the mutex held, so that the loop is still there.
  void wake();
  void end_offload();

  const UniqueFd epoll_;
  // Edge-triggered, so nobody has to empty it.
  const UniqueFd wakeup_;
  std::array<epoll_event, kEventsPerWait> events_;
  std::size_t found_ = 0;        // in events_
  std::vector<Watched*> again_;  // to be told in the next turn; null: gone
  FairOrder<Watched> due_;       // in this turn
  bool crowded_ = false;
  std::size_t watched_ = 0;     // descriptors
  Watched* telling_ = nullptr;  // null when it is gone
  Watched* latest_ = nullptr;   // that bytes were read from
  TimePoint latest_since_;
  bool read_ = false;  // something, since this was cleared
  TimePoint turn_began_;
  TimePoint asked_;  // epoll, about
  bool in_turn_ = false;
  std::vector<Function> running_;  // keeps its capacity

  std::atomic<bool> stopped_ = false;
  std::atomic<bool> has_posted_ = false;  // written under mutex_
  std::mutex mutex_;
  std::vector<Function> posted_;  // guarded by mutex_
  bool asleep_ = false;           // guarded by mutex_: another thread has to wake the loop
  std::size_t offloads_ = 0;      // guarded by mutex_
  std::condition_variable offload_ended_;
};

}  // namespace stag::net
