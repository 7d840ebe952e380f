#include "nfs/state/byte_ranges.h"

#include <iterator>

namespace stag::nfs::state::byte_ranges {
namespace {

using Ranges = std::map<std::uint64_t, Held>;

// The last that begins at or before the range, even as its neighbour, or the first behind it.
Ranges::const_iterator first_that_may_join(const Ranges& ranges, const Range& range) {
  const auto behind = ranges.lower_bound(range.first);
  return behind == ranges.begin() ? behind : std::prev(behind);
}

// What is left of `held` around `range`.
void keep_around(const Held& held, const Range& range, Ranges& to) {
  if (held.range.first < range.first)
    to[held.range.first] = {{held.range.first, range.first - 1}, held.exclusive, held.via, {}};
  if (held.range.last > range.last)
    to[range.last + 1] = {{range.last + 1, held.range.last}, held.exclusive, held.via, {}};
}

RangeIndex<LockOwnerRecord>& index_of(FileRecord& file, const Held& held) {
  return held.exclusive ? file.exclusive : file.shared;
}

void erase(LockOwnerRecord& owner, Ranges::iterator at) {
  Held& held = at->second;
  index_of(*owner.file, held).erase(held.range, &owner);
  held.via->held.erase(held);
  --held.via->ranges;
  --owner.holder->ranges;
  --owner.file->ranges;
  owner.holder->count(-1);
  owner.ranges.erase(at);
}

}  // namespace

std::optional<Conflict> conflict(const FileRecord& file, const LockOwnerRecord* owner,
                                 const Range& range, bool exclusive) {
  const auto* entry = file.exclusive.find_other(range, owner);
  if (entry == nullptr && exclusive) entry = file.shared.find_other(range, owner);
  if (entry == nullptr) return std::nullopt;
  return Conflict{entry->holder, entry->holder->ranges.at(entry->range.first)};
}

Change plan(const LockOwnerRecord* owner, const Range& range, std::optional<bool> exclusive,
            LockState* via) {
  Change change;
  Range merged = range;
  if (owner != nullptr) {
    for (auto at = first_that_may_join(owner->ranges, range); at != owner->ranges.end(); ++at) {
      const Held& held = at->second;
      const bool merges = exclusive == held.exclusive && held.via == via;
      // A neighbour behind still joins; whatever is behind that does not.
      if (held.range.first > range.last && !held.range.joins(range)) break;
      if (!(merges ? held.range.joins(range) : held.range.overlaps(range))) continue;
      change.gone.push_back(held);
      if (merges)
        merged = hull(merged, held.range);
      else
        keep_around(held, range, change.come);
    }
  }
  if (exclusive) change.come[merged.first] = {merged, *exclusive, via, {}};
  return change;
}

void make_room(FileRecord& file, const LockOwnerRecord& owner, const Change& change) {
  auto at = change.come.begin();
  try {
    for (; at != change.come.end(); ++at)
      index_of(file, at->second).insert(at->second.range, &owner);
  } catch (...) {
    while (at != change.come.begin()) {
      --at;
      index_of(file, at->second).erase(at->second.range, &owner);
    }
    throw;
  }
}

void apply(LockOwnerRecord& owner, Change& change, LockState& via) noexcept {
  for (const Held& held : change.gone) erase(owner, owner.ranges.find(held.range.first));
  for (auto& [first, held] : change.come) {
    if (held.via == nullptr) held.via = &via;
    held.via->held.push_front(held);
    ++held.via->ranges;
  }
  const auto count = static_cast<std::int32_t>(change.come.size());
  owner.holder->ranges += static_cast<std::uint32_t>(count);
  owner.file->ranges += static_cast<std::uint32_t>(count);
  owner.holder->count(count);
  owner.ranges.merge(change.come);
}

void drop(LockState& via) {
  LockOwnerRecord& owner = *via.owner;
  while (const Held* const held = via.held.front())
    erase(owner, owner.ranges.find(held->range.first));
}

std::optional<Range> hull_of(const LockState& via) {
  std::optional<Range> all;
  for (const Held* held = via.held.front(); held != nullptr; held = via.held.next(*held))
    all = hull(all, held->range);
  return all;
}

}  // namespace stag::nfs::state::byte_ranges
