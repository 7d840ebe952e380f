// errno as a Status.
#pragma once

#include <cerrno>

#include "vfs/status.h"

namespace stag::vfs::posix {

Status status_of(int error);
inline Failure<Status> last_error() {
  return Failure{status_of(errno)};
}

}  // namespace stag::vfs::posix
