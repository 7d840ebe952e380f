// How much of a file the kernel reads ahead: 128 KiB, for FUSE as for most file systems, unless
// somebody with the right writes another number to sysfs. Until then no READ of a file that is read
// in order is longer.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace stag::fuse {

// The devices of file systems in sysfs. Empty: they are not to be seen.
UniqueFd open_backing_devices();

// Has the kernel read so many bytes ahead of the file system `device` ("0:53"), if this process may
// say so. `devices` was opened before that was mounted: a process that walks through a
// mount that it serves itself waits for its own answer.
void set_read_ahead(const UniqueFd& devices, const std::string& device, std::uint64_t bytes);

}  // namespace stag::fuse
