// The grace period after a start (RFC 8881 8.4.2, RFC 1813 6.1.4): for a while only clients that
// had something before may claim it again, and nobody else gets anything. There is one for all
// versions of NFS, because what one version gives away is what a client of another could claim.
//
// It ends when its time is over, or earlier when nobody is left who could claim anything. What must
// be written before (finish_by()) is written first: until then it goes on.
//
// Thread: any, but for finish_by().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/brief_mutex.h"
#include "base/loop.h"
#include "base/unique_function.h"

namespace stag::nfs::state {

class GracePeriod {
 public:
  // Called once the period is due, by whoever notices, on his thread and perhaps with his locks
  // held: it calls end() or put_off() with this number, at once or later.
  using Finish = UniqueFunction<void(std::uint64_t number, TimePoint now)>;
  // Before the first request. Without one the period just ends.
  void finish_by(Finish finish) { finish_ = std::move(finish); }

  // Begins it, or makes it longer. `full_time`: somebody may claim who never says that he is done.
  void begin(TimePoint end, bool full_time) {
    const BriefLock lock(mutex_);
    const bool goes_on = active();
    end_ = goes_on ? std::max(end_, end) : end;
    full_time_ = full_time || (goes_on && full_time_);
    finishing_ = false;
    ++number_;
    active_.store(true, std::memory_order_release);
  }
  bool active() const { return active_.load(std::memory_order_acquire); }
  // The same, and ends it where it is due.
  bool active(TimePoint now) {
    if (!active()) return false;
    std::uint64_t number = 0;
    {
      const BriefLock lock(mutex_);
      if (now < end_ || finishing_ || !active()) return active();
      if (!finish_) return stop();
      finishing_ = true;
      number = number_;
    }
    finish_(number, now);
    return active();
  }
  // All who could claim something have said that they are done.
  void nobody_left(TimePoint now) {
    {
      const BriefLock lock(mutex_);
      if (full_time_) return;
      end_ = std::min(end_, now);
    }
    active(now);
  }

  // Whether this is the number of the last to begin, and it is due: else what was to be written at
  // its end is not to be written.
  bool finishing(std::uint64_t number) {
    const BriefLock lock(mutex_);
    return number == number_ && finishing_;
  }
  // Nothing happens when another period has begun since.
  void end(std::uint64_t number) {
    const BriefLock lock(mutex_);
    if (number == number_) stop();
  }
  void put_off(std::uint64_t number, TimePoint until) {
    const BriefLock lock(mutex_);
    if (number != number_) return;
    end_ = until;
    finishing_ = false;
  }

 private:
  bool stop() {
    full_time_ = finishing_ = false;
    active_.store(false, std::memory_order_release);
    return false;
  }

  BriefMutex mutex_;
  std::atomic<bool> active_{false};
  TimePoint end_{};
  bool full_time_ = false;
  bool finishing_ = false;
  std::uint64_t number_ = 0;  // of begin() calls
  Finish finish_;
};

}  // namespace stag::nfs::state
