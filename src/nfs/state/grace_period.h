// The grace period after a start (RFC 8881 8.4.2, RFC 1813 6.1.4): for a while only clients that
// had something before may claim it again, and nobody else gets anything. There is one for all
// versions of NFS, because what one version gives away is what a client of another could claim.
//
// It ends when its time is over, or earlier when nobody is left who could claim anything. What must
// be written before (finish_first_by(), finish_by()) is written first: until then it goes on. It
// goes on, too, while claims come in, and while the server itself keeps clients from claiming, both
// within limits (RFC 8881 8.4.2.1: "some additional time" may be added to it; RFC 7530 9.6.2).
// Decision 0087.
//
// Thread: any, but for finish_by().
#pragma once

#include <atomic>
#include <cstdint>
#include <list>

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
  // The same for what is written before that; it calls finish() in place of end().
  void finish_first_by(Finish finish) { finish_first_ = std::move(finish); }

  // Called when it has begun, or was made longer: from now on the server asks active(now) again and
  // again, until it is over.
  using Watch = UniqueFunction<void()>;
  // Before the first request.
  void watch_by(Watch watch) { watch_ = std::move(watch); }

  // For how long at most, in all, a period goes on past its time while claims come in. Before it
  // begins.
  void set_more_for_claims(Duration most) { more_for_claims_ = most; }
  // The same while the server keeps clients from claiming, besides.
  static constexpr Duration kMoreForServer = std::chrono::minutes(5);

  // Why it goes on past its time: claims come in, or wait for the server.
  enum class Late : std::uint8_t { No, Claims, Server };

  // What is known of it, for an administrator.
  struct Info {
    bool active = false;     // false: it is over
    TimePoint end{};         // when it is due, unless it goes on
    bool full_time = false;  // it cannot end earlier, but at an administrator's word
    bool early = false;      // no client is left that could claim anything
    bool by_administrator = false;
    Late late = Late::No;
    Duration more{};            // for how long it may go on because of that
    std::uint64_t clients = 0;  // of version 4, that have claimed something
    std::uint64_t claims = 0;   // opens, locks and delegations that were claimed, and granted
  };
  // Told that it has begun, was made longer, goes on past its time (once for each cause), or has
  // ended, on the thread that noticed.
  using Told = UniqueFunction<void(const Info&)>;
  // Before it begins.
  void tell(Told told) { told_ = std::move(told); }
  Info info() {
    const BriefLock lock(mutex_);
    return info_;
  }

  // Begins it, or makes it longer. `full_time`: some client that may reclaim never says that it is
  // done.
  void begin(TimePoint end, bool full_time);
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
  // Whether a client whose mark this is has claimed something in this period.
  bool has_claimed(const std::uint64_t& mark) {
    const BriefLock lock(mutex_);
    return mark == period_;
  }

  // A claim that the server works on, of somebody who may claim: what came in time is not too late
  // because it takes long. The period outlives it. Finds no memory: it is not made.
  class Claim {
   public:
    Claim(GracePeriod& period, TimePoint now);
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim();

   private:
    GracePeriod& period_;
    std::list<TimePoint> place_;  // between being made and being put in, and behind being taken out
    std::list<TimePoint>::iterator at_;
  };
  // A client, or a host, that may claim was asked to come again: the server cannot decide now.
  void held_up(TimePoint now);

  bool active() const { return active_.load(std::memory_order_acquire); }
  // The same, and ends it where it is due.
  bool active(TimePoint now);
  // All who could claim something have said that they are done.
  void nobody_left(TimePoint now);
  // An administrator ends it, whoever may still claim something. False: there is none.
  bool end_by_administrator(TimePoint now);

  // Whether this is the number of the last to begin, and it is due: else what was to be written at
  // its end is not to be written.
  bool finishing(std::uint64_t number) {
    const BriefLock lock(mutex_);
    return number == number_ && finishing_;
  }
  // Nothing happens when another period has begun since.
  void finish(std::uint64_t number, TimePoint now);
  void end(std::uint64_t number);
  void put_off(std::uint64_t number, TimePoint until) {
    const BriefLock lock(mutex_);
    if (number != number_) return;
    info_.end = until;
    finishing_ = false;
  }

 private:
  bool goes_on(TimePoint now);
  bool go_on(TimePoint until, TimePoint now, Duration& left);

  BriefMutex mutex_;
  std::atomic<bool> active_{false};  // as in info_, for those who ask without the mutex
  Info info_;
  bool finishing_ = false;
  bool at_once_ = false;      // nothing that comes in, or waits, makes it go on
  std::uint64_t number_ = 0;  // of begin() calls
  std::uint64_t period_ = 0;  // of those that did not make a period longer
  Duration more_for_claims_{};
  Duration claims_left_{}, server_left_{};  // of these limits
  bool told_claims_ = false, told_server_ = false;
  std::uint64_t claims_seen_ = 0;
  // When that was last seen to rise, and when somebody was asked to come again.
  TimePoint claimed_ = TimePoint::min(), held_up_ = TimePoint::min();
  std::list<TimePoint> in_progress_;  // when they began
  Finish finish_first_, finish_;
  Watch watch_;
  Told told_;
};

}  // namespace stag::nfs::state
