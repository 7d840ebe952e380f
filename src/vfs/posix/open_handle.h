// open_by_handle_at(2), as long as it takes.
#pragma once

#include <sched.h>

#include <cerrno>

namespace stag::vfs::posix {

// What `open` returns: a descriptor, or -1 with errno. While the number of an inode that is gone is
// given to a new one, ext4 answers its handle with ENOMEM. That is over in moments, and then the
// handle is stale; only where it lasts is memory short.
template <class Open>
int open_handle(Open open) {
  constexpr int kTries = 16;
  int fd = open();
  for (int tries = 1; tries < kTries && fd < 0 && errno == ENOMEM; ++tries) {
    ::sched_yield();
    fd = open();
  }
  return fd;
}

}  // namespace stag::vfs::posix
