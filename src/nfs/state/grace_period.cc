#include "nfs/state/grace_period.h"

#include <algorithm>
#include <optional>

namespace stag::nfs::state {

namespace {

// A client that reclaims one thing after the other is not done when so little time has passed.
constexpr Duration kStillClaiming = std::chrono::seconds(5);
// Linux asks again after 15 s at most.
constexpr Duration kAsksAgain = std::chrono::seconds(20);
// How soon a claim in progress is looked at again.
constexpr Duration kLook = std::chrono::seconds(5);

}  // namespace

void GracePeriod::begin(TimePoint end, bool full_time) {
  Info begun;
  {
    const BriefLock lock(mutex_);
    if (!info_.active) {
      info_ = {}, ++period_;
      claims_seen_ = 0;
      claimed_ = held_up_ = TimePoint::min();
    }
    info_.active = true;
    info_.end = std::max(info_.end, end);
    info_.full_time |= full_time;
    info_.early = info_.by_administrator = finishing_ = at_once_ = false;
    info_.late = Late::No;
    claims_left_ = more_for_claims_;
    server_left_ = kMoreForServer;
    told_claims_ = told_server_ = false;
    ++number_;
    active_.store(true, std::memory_order_release);
    begun = info_;
  }
  if (watch_) watch_();
  if (told_) told_(begun);
}

GracePeriod::Claim::Claim(GracePeriod& period, TimePoint now)
    : period_(period), place_{now}, at_(place_.begin()) {
  const BriefLock lock(period_.mutex_);
  period_.in_progress_.splice(period_.in_progress_.end(), place_);
}

GracePeriod::Claim::~Claim() {
  const BriefLock lock(period_.mutex_);
  place_.splice(place_.end(), period_.in_progress_, at_);
}

void GracePeriod::held_up(TimePoint now) {
  const BriefLock lock(mutex_);
  held_up_ = std::max(held_up_, now);
}

bool GracePeriod::active(TimePoint now) {
  if (!active()) return false;
  std::uint64_t number = 0;
  std::optional<Info> late;
  {
    const BriefLock lock(mutex_);
    if (info_.claims != claims_seen_) claims_seen_ = info_.claims, claimed_ = now;
    if (now < info_.end || finishing_ || !active()) return active();
    if (goes_on(now)) {
      bool& told = info_.late == Late::Claims ? told_claims_ : told_server_;
      if (told) return true;
      told = true;
      late = info_;
    } else {
      finishing_ = true;
      number = number_;
    }
  }
  if (late) {
    if (told_) told_(*late);
    return true;
  }
  if (finish_first_)
    finish_first_(number, now);
  else
    finish(number, now);
  return active();
}

// With the mutex, once it is due. A claim that has just begun is no sign that the server is slow
// where others are granted: its client, too, would claim without end.
bool GracePeriod::goes_on(TimePoint now) {
  if (at_once_) return false;
  const bool comes_in = now < claimed_ + kStillClaiming;
  if (comes_in && go_on(claimed_ + kStillClaiming, now, claims_left_)) {
    info_.late = Late::Claims;
    info_.more = info_.end - now + claims_left_;
    return true;
  }
  const bool waits =
      !in_progress_.empty() && (!comes_in || now >= in_progress_.front() + kStillClaiming);
  const bool comes_again = now < held_up_ + kAsksAgain;
  if (!waits && !comes_again) return false;
  const TimePoint until =
      std::max(waits ? now + kLook : now, comes_again ? held_up_ + kAsksAgain : now);
  if (!go_on(until, now, server_left_)) return false;
  info_.late = Late::Server;
  info_.more = info_.end - now + server_left_;
  return true;
}

// Takes from `left` what there is of it.
bool GracePeriod::go_on(TimePoint until, TimePoint now, Duration& left) {
  const Duration more = std::min(until - info_.end, left);
  if (info_.end + more <= now) return false;
  info_.end += more;
  left -= more;
  return true;
}

void GracePeriod::nobody_left(TimePoint now) {
  {
    const BriefLock lock(mutex_);
    if (info_.full_time || !info_.active) return;
    info_.early |= now < info_.end && info_.late == Late::No;
    info_.end = std::min(info_.end, now);
    at_once_ = true;
  }
  active(now);
}

bool GracePeriod::end_by_administrator(TimePoint now) {
  {
    const BriefLock lock(mutex_);
    if (!info_.active) return false;
    info_.by_administrator = at_once_ = true;
    info_.end = std::min(info_.end, now);
  }
  active(now);
  return true;
}

void GracePeriod::finish(std::uint64_t number, TimePoint now) {
  if (!finishing(number)) return;
  if (finish_)
    finish_(number, now);
  else
    end(number);
}

void GracePeriod::end(std::uint64_t number) {
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

}  // namespace stag::nfs::state
