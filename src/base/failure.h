// Exceptions where they end. Nothing of ours throws but what the language and its library throw
// (std::bad_alloc); what users give us to call may throw anything.
#pragma once

#include <string_view>

#include "base/reason.h"

namespace stag {

// Inside a catch block: traces the exception as OutOfMemory when it is a std::bad_alloc, else under
// `reason`, with what it says of itself. Returns the one or the other.
Reason trace_exception(Reason reason, std::string_view where = {}) noexcept;

}  // namespace stag
