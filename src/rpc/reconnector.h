// Reconnector: makes the connection of a Channel, and replaces a lost one while the Channel wants
// one. The first attempt follows at once; until a connection has proved good, each further attempt
// comes a longer while after the one before, by a random time, so that many clients of one server
// do not come back together. A call that wants a connection after such a while does not wait.
//
// Thread: the Channel's loop. It is stopped and joined before it is destroyed.
#pragma once

#include <cstdint>
#include <random>

#include "base/cancel.h"
#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/task_group.h"

namespace stag::rpc {

struct BackOff {
  Duration first = std::chrono::milliseconds(50);  // behind the first failure; then it doubles
  Duration longest = std::chrono::seconds(5);      // each is between half of what it may be and all
  Duration give_up_after = Duration::max();        // without a connection
};

class Reconnector {
 public:
  class Owner {
   public:
    // Makes one connection, which is in use when it succeeds.
    virtual Task<Result<Ok, Reason>> attempt(CancelToken cancel) = 0;
    // Whether there is still reason to connect.
    virtual bool wants_connection() const = 0;
    virtual void on_attempt_failed(Reason reason) = 0;
    // No more attempts for now. Reason::None: there is a connection, or the owner wants none. Else
    // why there is none.
    virtual void on_attempts_ended(Reason) {}

   protected:
    ~Owner() = default;
  };

  Reconnector(Loop& loop, Owner& owner, const BackOff& back_off, std::uint32_t seed)
      : loop_(loop), owner_(owner), back_off_(back_off), random_(seed) {}

  // One attempt, now.
  Task<Result<Ok, Reason>> connect(CancelToken cancel);
  // Attempts until one succeeds; does nothing while there are some, or when stopped.
  void start();
  // The connection has proved good by a Reply to a call, not to a probe: when it is lost the next
  // attempt follows at once. A peer that answers no call would be connected to without a pause
  // otherwise.
  void worked() { failures_ = 0; }
  bool connecting() const { return connecting_; }

  // Ends the attempts; there will be no others.
  void stop() { stop_.cancel(); }
  bool stopped() const { return stop_.cancelled(); }
  auto join() { return tasks_.join(); }

 private:
  Task<void> run();
  Task<Reason> attempts();
  Duration next_back_off();

  Loop& loop_;
  Owner& owner_;
  const BackOff back_off_;
  std::minstd_rand random_;
  std::uint32_t failures_ = 0;  // attempts in a row that brought no good connection
  TimePoint last_attempt_{};    // its end
  bool connecting_ = false;
  CancelSource stop_;
  TaskGroup tasks_;
};

}  // namespace stag::rpc
