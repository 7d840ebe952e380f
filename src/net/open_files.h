// How many connections the process's limit of open files leaves room for.
#pragma once

#include <cstdint>

namespace stag::net {

// The soft limit of this process (RLIMIT_NOFILE), as it is now.
std::uint64_t open_files_limit();
// Of `open_files`, so many that enough remain for everything but connections: half of them, or 4096
// where that is less.
std::uint64_t connections_within(std::uint64_t open_files);

}  // namespace stag::net
