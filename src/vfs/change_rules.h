// Rules on which user may change which attributes of an object, as far as ownership decides it. The
// store checks the permission to write, which changes of the size and times set to now need.
#pragma once

#include <optional>

#include "vfs/status.h"
#include "vfs/types.h"

namespace stag::vfs {

inline constexpr std::uint64_t kLargestFile =
    0x7fff'ffff'ffff'ffff;  // offsets are signed in the systems that ask

// Invalid when a value is impossible: the user or group kNoId, or a time with a billion nanoseconds
// or more. Operations that set attributes or create objects check this first.
std::optional<Status> fault_of_values(const SetAttributes& changes);

// Perm, NotSupported, IsDirectory, Invalid or FileTooBig; nothing when the caller may, or root
// asks.
std::optional<Status> fault_of_change(const Attributes& object, const Credentials& who,
                                      const SetAttributes& changes);

inline bool changes_anything(const SetAttributes& changes) {
  return changes.mode || changes.uid || changes.gid || changes.size ||
         changes.accessed.how != SetTime::How::Keep || changes.modified.how != SetTime::How::Keep;
}

}  // namespace stag::vfs
