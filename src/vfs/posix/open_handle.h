// open_by_handle_at(2), as long as it takes.
#pragma once

#include <sched.h>
#include <time.h>

#include <cerrno>

namespace stag::vfs::posix {

// What `open` returns: a descriptor, or -1 with errno. While the number of an inode that is gone is
// given to a new one, ext4 answers its handle with ENOMEM. That is over in moments, or, on a busy
// machine, at the next turn of the thread that makes the new one, and then the handle is stale;
// only where it lasts is memory short.
template <class Open>
int open_handle(Open open) {
  constexpr int kMoments = 16, kTurns = 64;
  constexpr ::timespec kPause{0, 1'000'000};
  int fd = open();
  for (int tries = 0; tries < kMoments + kTurns && fd < 0 && errno == ENOMEM; ++tries) {
    if (tries < kMoments)
      ::sched_yield();
    else
      ::nanosleep(&kPause, nullptr);
    fd = open();
  }
  return fd;
}

}  // namespace stag::vfs::posix
