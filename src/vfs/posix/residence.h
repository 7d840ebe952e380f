// Where the data of a file system is, as statfs(2) tells: that says whether a loop may ask it
// itself.
#pragma once

#include <cstdint>

namespace stag::vfs::posix {

enum class Residence : std::uint8_t {
  Memory,     // of this machine: nothing is ever waited for
  Disk,       // of this machine: what is cached is had without waiting
  Elsewhere,  // any call may wait for another process or machine, for ever
};

// `type` is statfs's f_type. What is not known, and what stands on other file systems (overlayfs),
// is Elsewhere.
Residence residence_of(std::int64_t type);

}  // namespace stag::vfs::posix
