// Residence: where the data of a file system is, by its statfs(2) type. It decides whether a loop
// may use the file system itself.
#pragma once

#include <cstdint>

namespace stag::vfs::posix {

enum class Residence : std::uint8_t {
  Memory,     // of this machine: no operation waits
  Disk,       // of this machine: operations on cached data do not wait
  Elsewhere,  // any call may wait for another process or machine, without limit
};

// `type` is statfs's f_type. Unknown file systems, and those that stand on others (overlayfs), are
// Elsewhere.
Residence residence_of(std::int64_t type);

}  // namespace stag::vfs::posix
