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
  // Called once the period is due, on the thread that notices and perhaps with its locks held: it
  // calls end() or put_off() with this number, at once or later.
  using Finish = UniqueFunction<void(std::uint64_t number, TimePoint now)>;
  // Before the first request. Without one the period just ends.
  void finish_by(Finish finish) { finish_ = std::move(finish); }

  // Called when it has begun, or was made longer: from now on the server asks active(now) again and
  // again, until it is over.
  using Watch = UniqueFunction<void()>;
  // Before the first request.
  void watch_by(Watch watch) { watch_ = std::move(watch); }

  // What is known of it, for an administrator.
  struct Info {
    bool active = false;        // false: it is over
    TimePoint end{};            // when it is due, at the latest
    bool full_time = false;     // it cannot end earlier
    bool early = false;         // no client is left that could claim anything
    std::uint64_t clients = 0;  // of version 4, that have claimed something
    std::uint64_t claims = 0;   // opens, locks and delegations that were claimed, and granted
  };
  // Told that it has begun, was made longer, or has ended, on the thread that noticed.
  using Told = UniqueFunction<void(const Info&)>;
  // Before it begins.
  void tell(Told told) { told_ = std::move(told); }
  Info info() {
    const BriefLock lock(mutex_);
    return info_;
  }

  // Begins it, or makes it longer. `full_time`: some client that may reclaim never says that it is
  // done.
  void begin(TimePoint end, bool full_time) {
    Info begun;
    {
      const BriefLock lock(mutex_);
      if (!info_.active) info_ = {}, ++period_;
      info_.active = true;
      info_.end = std::max(info_.end, end);
      info_.full_time |= full_time;
      info_.early = finishing_ = false;
      ++number_;
      active_.store(true, std::memory_order_release);
      begun = info_;
    }
    if (watch_) watch_();
    if (told_) told_(begun);
  }
  // A host was granted what it claims.
  void claimed() {
    const BriefLock lock(mutex_);
    ++info_.claims;
  }
  // The same of a client of version 4, whose `mark` is 0 at first, and only used here.
  void claimed(std::uint64_t& mark) {
    const BriefLock lock(mutex_);
    ++info_.claims;
    if (mark != period_) ++info_.clients;
    mark = period_;
  }
  bool active() const { return active_.load(std::memory_order_acquire); }
  // The same, and ends it where it is due.
  bool active(TimePoint now) {
    if (!active()) return false;
    std::uint64_t number = 0;
    {
      const BriefLock lock(mutex_);
      if (now < info_.end || finishing_ || !active()) return active();
      finishing_ = true;
      number = number_;
    }
    if (finish_)
      finish_(number, now);
    else
      end(number);
    return active();
  }
  // All who could claim something have said that they are done.
  void nobody_left(TimePoint now) {
    {
      const BriefLock lock(mutex_);
      if (info_.full_time || !info_.active) return;
      info_.early |= now < info_.end;
      info_.end = std::min(info_.end, now);
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
    Info ended;
    {
      const BriefLock lock(mutex_);
      if (number != number_ || !info_.active) return;
      info_.active = finishing_ = false;
      active_.store(false, std::memory_order_release);
      ended = info_;
    }
    if (told_) told_(ended);
  }
  void put_off(std::uint64_t number, TimePoint until) {
    const BriefLock lock(mutex_);
    if (number != number_) return;
    info_.end = until;
    finishing_ = false;
  }

 private:
  BriefMutex mutex_;
  std::atomic<bool> active_{false};  // as in info_, for those who ask without the mutex
  Info info_;
  bool finishing_ = false;
  std::uint64_t number_ = 0;  // of begin() calls
  std::uint64_t period_ = 0;  // of those that did not make a period longer
  Finish finish_;
  Watch watch_;
  Told told_;
};

}  // namespace stag::nfs::state
