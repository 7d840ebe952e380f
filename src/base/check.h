// STAG_CHECK(expression): ends the process with a message when `expression` is false. It guards
// against bugs of this program. An error of a peer is a value (Result); nothing that a peer sends
// may reach a failing STAG_CHECK.
#pragma once

namespace stag {
// Writes where and what to standard error, and aborts. Thread: any.
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}  // namespace stag

#define STAG_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::stag::check_failed(#expression, __FILE__, __LINE__))
