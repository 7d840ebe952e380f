// Whether the store would let a caller do what another holder is in the way of. Asked before that
// one makes way: a caller who is refused in the end recalls no delegation, and ends no client that
// has lapsed.
//
// Nothing is refused here that the store would do. What it refuses for other reasons than the
// permission of the caller (a full disk, say) passes.
#pragma once

#include <optional>

#include "base/task.h"
#include "nfs/state/files.h"
#include "vfs/types.h"

namespace stag::nfs {

struct ExportObject;

// What an operation is about to do to an object. What it refers to outlives it.
struct Intent {
  state::Touch touch = state::Touch::Look;
  const vfs::SetAttributes* changes = nullptr;  // SETATTR
  bool as_owner = false;                        // an access control list is replaced
  // LINK: the one that gets a name. REMOVE and RENAME: the one that loses it.
  const ExportObject* directory = nullptr;

  // A SETATTR of nothing is in nobody's way.
  bool does_nothing() const;
};

inline constexpr Intent kToRead{state::Touch::Read};
inline constexpr Intent kToWrite{state::Touch::Write};
inline constexpr Intent kToSetSize{state::Touch::Size};
inline constexpr Intent kToSetXattr{state::Touch::Attributes};

// Why the store would refuse it: Access or Perm, what it said when it was asked, or that the
// attributes cannot be set; nullopt: it would not. Both arguments outlive the Task.
Task<std::optional<vfs::Status>> refusal_of(const ExportObject& object, const Intent& intent);

}  // namespace stag::nfs
