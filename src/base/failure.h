// Where exceptions end (decision 0014). This project throws only what the language and its library
// throw (std::bad_alloc); functions that users pass in may throw anything.
#pragma once

#include <string_view>

#include "base/reason.h"

namespace stag {

// Called inside a catch block: traces the exception as OutOfMemory when it is a std::bad_alloc,
// else under `reason` with its what(). Returns the Reason that it has traced.
Reason trace_exception(Reason reason, std::string_view where = {}) noexcept;

}  // namespace stag
