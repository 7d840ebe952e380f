// Locks of whole files (flock(2)).
#pragma once

#include <functional>

#include "base/loop.h"

namespace stag::cli {

// Locks the file exclusively, waiting so long for others, and does what `meanwhile` does again and
// again. False with errno set: EWOULDBLOCK where another still has it. Blocking.
bool lock_within(
    int fd, Duration wait, const std::function<void()>& meanwhile = [] {});

}  // namespace stag::cli
