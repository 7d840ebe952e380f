// errno, in the project's words.
#pragma once

#include "base/reason.h"

namespace stag::net {

// The Reason for a failed socket call. An errno that has no word of its own becomes SocketFailed,
// traced with its text.
Reason reason_of_errno(int error);

}  // namespace stag::net
