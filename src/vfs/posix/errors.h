// errno as a Status.
#pragma once

#include <cerrno>

#include "vfs/errors.h"

namespace stag::vfs::posix {

inline Failure<Status> last_error() {
  return Failure{status_of(errno)};
}

}  // namespace stag::vfs::posix
