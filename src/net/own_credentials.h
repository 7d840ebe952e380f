// A thread inherits the file-system user and group of the thread that started it (credentials(7)),
// which for a moment may be those of a client, on whose behalf it asks for a file. Threads of this
// project that serve more than one client are the process's own again before they do anything.
#pragma once

#include <sys/fsuid.h>
#include <unistd.h>

namespace stag::net {

// Of the calling thread.
inline void take_own_credentials() {
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
}

}  // namespace stag::net
