// ChangeCounter: Attributes::change of one object (decision 0025). File systems stamp an object's
// ctime with a clock that ticks every few milliseconds, so that two changes may leave the same
// ctime; the counter tells them apart, and never goes back, whatever is forgotten between.
//
// What an object has is a number between its ctime and its ctime plus kSettled, in nanoseconds. As
// long as the object is known every change of ours takes the next number, and a ctime that moved
// takes itself, if that is more. Of an object that is seen for the first time, or again after it
// was forgotten, nobody knows how many changes its ctime stands for: it takes the time of now while
// the ctime is younger than kSettled, kSettled more than the ctime afterwards. Either is at least
// what was said before, and after a restart, too.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/brief_mutex.h"

namespace stag::vfs::posix {

// Nanoseconds since 1970 by the clock that ctimes are of.
inline std::uint64_t wall_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

class ChangeCounter {
 public:
  // More than two ticks of the coarsest file system there is (FAT: two seconds).
  static constexpr std::uint64_t kSettled = 5'000'000'000;

  // The number of an object whose ctime was seen.
  template <class Now = std::uint64_t (*)()>
  std::uint64_t seen(std::uint64_t ctime, Now now = wall_clock) {
    const BriefLock lock(mutex_);
    look(ctime, now);
    return last_;
  }
  // The same after a change of ours, which the ctime may not tell.
  template <class Now = std::uint64_t (*)()>
  std::uint64_t changed(std::uint64_t ctime, Now now = wall_clock) {
    const BriefLock lock(mutex_);
    if (!look(ctime, now)) ++last_;
    return last_;
  }

 private:
  // Whether the ctime took the counter on.
  template <class Now>
  bool look(std::uint64_t ctime, Now now) {
    if (known_ && ctime == ctime_) return false;
    last_ = known_ ? std::max(ctime, last_ + 1) : std::clamp(now(), ctime, ctime + kSettled);
    ctime_ = ctime;
    known_ = true;
    return true;
  }

  BriefMutex mutex_;
  bool known_ = false;
  std::uint64_t ctime_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace stag::vfs::posix
