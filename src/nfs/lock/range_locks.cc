#include "nfs/lock/range_locks.h"

#include <algorithm>

#include "nfs/state/range_plan.h"

namespace stag::nfs::lock {

std::optional<Held> RangeLocks::conflict(const Owner& owner, const Range& range,
                                         bool exclusive) const {
  const auto mine = holders_.find(owner);
  const Locks* own = mine == holders_.end() ? nullptr : &mine->second;
  const Index::Entry* entry = exclusive_.find_other(range, own);
  if (entry == nullptr && exclusive) entry = shared_.find_other(range, own);
  if (entry == nullptr) return std::nullopt;
  return entry->holder->at(entry->range.first);
}

std::vector<Held> RangeLocks::of(const Owner& owner, const Range& range) const {
  std::vector<Held> found;
  const auto mine = holders_.find(owner);
  if (mine == holders_.end()) return found;
  for (auto at = state::first_that_may_join(mine->second, range);
       at != mine->second.end() && at->first <= range.last; ++at) {
    Held held = at->second;
    if (!held.range.overlaps(range)) continue;
    held.range = {std::max(held.range.first, range.first), std::min(held.range.last, range.last)};
    found.push_back(std::move(held));
  }
  return found;
}

OwnerPtr RangeLocks::holder(const Owner& owner) const {
  const auto mine = holders_.find(owner);
  return mine == holders_.end() ? nullptr : mine->first;
}

RangeLocks::Change RangeLocks::plan(const OwnerPtr& owner, const Range& range,
                                    std::optional<bool> exclusive) const {
  Change change;
  Range merged = range;
  if (const auto mine = holders_.find(*owner); mine != holders_.end())
    merged = state::plan_range(
        mine->second, range, [&](const Held& held) { return exclusive == held.exclusive; },
        [&](const Held& held) { change.gone.push_back(held); },
        [&](const Held& held, const Range& rest) {
          change.come.push_back({rest, held.exclusive, held.owner});
        });
  if (exclusive) change.come.push_back({merged, *exclusive, owner});
  return change;
}

RangeParts RangeLocks::parts(const Owner& owner, const Range& range) const {
  RangeParts locked, free;
  for (const Held& held : of(owner, range)) locked.push_back({held.range, held.exclusive});
  for (const Range& gap : outside(range, locked)) free.push_back({gap, std::nullopt});
  return merged(locked, free);
}

RangeLocks::Change RangeLocks::plan_revert(const OwnerPtr& owner, const RangeParts& before) const {
  Change change;
  const auto mine = holders_.find(*owner);
  if (mine != holders_.end() && !before.empty()) {
    const Range all = hull(before.front().range, before.back().range);
    for (auto at = state::first_that_may_join(mine->second, all);
         at != mine->second.end() && at->first <= all.last; ++at) {
      const Held& held = at->second;
      const std::vector<Range> left = outside(held.range, before);
      if (left == std::vector{held.range}) continue;
      change.gone.push_back(held);
      for (const Range& range : left) change.come.push_back({range, held.exclusive, held.owner});
    }
  }
  for (const RangePart& part : before)
    if (part.exclusive) change.come.push_back({part.range, *part.exclusive, owner});
  return change;
}

void RangeLocks::apply(const Change& change) {
  if (change.gone.empty() && change.come.empty()) return;
  const OwnerPtr& owner = (change.come.empty() ? change.gone : change.come).front().owner;
  Locks fresh;
  for (const Held& held : change.come) fresh.emplace(held.range.first, held);
  const auto mine = holders_.try_emplace(owner).first;
  try {
    state::insert_all(fresh, mine->second,
                      [this](const Held& held) -> Index& { return index_of(held); });
  } catch (...) {
    if (mine->second.empty()) holders_.erase(mine);
    throw;
  }
  // Nothing fails from here on.
  for (const Held& held : change.gone) erase(held, mine->second);
  size_ += fresh.size();
  mine->second.merge(fresh);
  // An owner without locks is none.
  if (mine->second.empty()) holders_.erase(mine);
}

void RangeLocks::erase(const Held& held, Locks& locks) {
  index_of(held).erase(held.range, &locks);
  locks.erase(held.range.first);
  --size_;
}

std::vector<Held> RangeLocks::all() const {
  std::vector<Held> all;
  for (const auto& [owner, locks] : holders_)
    for (const auto& [first, held] : locks) all.push_back(held);
  return all;
}

std::optional<std::string> RangeLocks::locker_at(const std::string& preferred) const {
  constexpr int kLookedAt = 64;
  int looked_at = 0;
  for (const auto& [owner, locks] : holders_) {
    if (owner->client.address == preferred) return preferred;
    if (++looked_at == kLookedAt) break;
  }
  if (holders_.empty()) return std::nullopt;
  return holders_.begin()->first->client.address;
}

}  // namespace stag::nfs::lock
