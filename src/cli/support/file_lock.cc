#include "cli/support/file_lock.h"

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace stag::cli {

bool lock_within(int fd, Duration wait, const std::function<void()>& meanwhile) {
  // flock() has no time limit.
  constexpr Duration kPause = std::chrono::milliseconds(2);
  const TimePoint give_up = std::chrono::steady_clock::now() + wait;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= give_up) return false;
    meanwhile();
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace stag::cli
