// How many leases of the kernel all file systems of this process may have together: each takes two
// descriptors, its object's and its own.
#pragma once

#include <cstdint>

namespace stag::vfs::posix {

// Before the first lease; unless it is called, an eighth of the limit on open files
// (RLIMIT_NOFILE).
void limit_leases(std::uint32_t most);

}  // namespace stag::vfs::posix
