// STAG_CHECK: an error of ours is a bug and ends the process; an error of the peer is a value
// (Result), never a STAG_CHECK.
#pragma once

namespace stag {
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}

#define STAG_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::stag::check_failed(#expression, __FILE__, __LINE__))
