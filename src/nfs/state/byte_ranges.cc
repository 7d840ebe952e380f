#include "nfs/state/byte_ranges.h"

#include "nfs/state/range_plan.h"

namespace stag::nfs::state::byte_ranges {
namespace {

using Ranges = std::map<std::uint64_t, Held>;

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
  if (owner != nullptr)
    merged = plan_range(
        owner->ranges, range,
        [&](const Held& held) { return exclusive == held.exclusive && held.via == via; },
        [&](const Held& held) { change.gone.push_back(held); },
        [&](const Held& held, const Range& rest) {
          change.come[rest.first] = {rest, held.exclusive, held.via, {}};
        });
  if (exclusive) change.come[merged.first] = {merged, *exclusive, via, {}};
  return change;
}

void make_room(FileRecord& file, const LockOwnerRecord& owner, const Change& change) {
  insert_all(
      change.come, owner, [&](const Held& held) -> auto& { return index_of(file, held); });
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
