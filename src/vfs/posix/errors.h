// errno as a Status.
#pragma once

#include <cerrno>

#include "vfs/errors.h"

namespace stag::vfs::posix {

inline Failure<Status> last_error() {
  return Failure{status_of(errno)};
}

// Whether the disk, or what the user may have of it, is full.
inline bool is_full(int error) {
  return error == ENOSPC || error == EDQUOT;
}

}  // namespace stag::vfs::posix
