// The owners that hold byte ranges of one file. Locks are those of POSIX: an owner has at most one
// mode on each byte, what it sets replaces what it had, neighbouring ranges of one mode become one
// and unlocking a part splits (RFC 8881 9.2, 9.3). Everything costs about the logarithm of the
// number of locks (range_index.h), and of what is set what it replaces.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "nfs/state/file_records.h"

namespace stag::nfs::state::byte_ranges {

// What setting or unlocking a range comes to: ranges that end, and others in their place.
struct Change {
  std::vector<Held> gone;
  std::map<std::uint64_t, Held> come;  // by their first bytes
  std::int32_t net() const {
    return static_cast<std::int32_t>(come.size()) - static_cast<std::int32_t>(gone.size());
  }
  // All is as it is.
  bool is_none() const {
    if (gone.size() != 1 || come.size() != 1) return false;
    const Held& before = gone.front();
    const Held& after = come.begin()->second;
    return before.range == after.range && before.exclusive == after.exclusive &&
           before.via == after.via;
  }
};

struct Conflict {
  const LockOwnerRecord* owner = nullptr;
  Held held;
};

// One of another owner (null: whose there is none yet) in the way of such a lock.
std::optional<Conflict> conflict(const FileRecord& file, const LockOwnerRecord* owner,
                                 const Range& range, bool exclusive);
// To give `range` the mode `exclusive`, or none, for this owner (null: it has nothing yet). What
// comes through `via` and keeps its mode is merged.
Change plan(const LockOwnerRecord* owner, const Range& range, std::optional<bool> exclusive,
            LockState* via);
// Finds what comes of a plan a place among the ranges of the file, all of it or, where memory runs
// out, nothing. The owner may be one that has nothing yet and stands nowhere. apply() comes next,
// which cannot fail: what a client holds it holds until then.
void make_room(FileRecord& file, const LockOwnerRecord& owner, const Change& change);
// Ranges that come without `via` get this one.
void apply(LockOwnerRecord& owner, Change& change, LockState& via) noexcept;
// Everything that was locked through it last is unlocked.
void drop(LockState& via);
// From the first byte of that to the last; nullopt: there is nothing.
std::optional<Range> hull_of(const LockState& via);

}  // namespace stag::nfs::state::byte_ranges
