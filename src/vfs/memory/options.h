// What a store in memory is made with (vfs/memory/memory.h). A value; copied when the store is
// made.
#pragma once

#include <cstdint>

#include "vfs/types.h"

namespace stag::vfs::memory {

struct Options {
  // Bytes that the store may hold: file data, symbolic links' targets, access control lists, and
  // 512 bytes for each object and for each directory entry. Beyond it operations fail with
  // Status::NoSpace.
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  // Permission bits (0 to 07777), owner and group of the root directory.
  std::uint32_t root_mode = 01777;
  std::uint32_t root_uid = 0;
  std::uint32_t root_gid = 0;
  // Distinguishes the handles of this store from those of another or an earlier store; 0 draws a
  // random number.
  std::uint64_t instance = 0;
  // What attributes report as file_system_id; 0: `instance`.
  std::uint64_t file_system_id = 0;
  // Returns the time of day; any thread calls it. Null: the system's clock.
  Time (*now)() = nullptr;
};

}  // namespace stag::vfs::memory
