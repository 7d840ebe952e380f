#include "nfs/state/listing.h"

#include <algorithm>

#include "nfs/state/file_shard.h"

namespace stag::nfs::state {

namespace {

// The longest open or lock owner (NFS4_OPAQUE_LIMIT).
constexpr std::size_t kOwnerMax = 1024;
// Places, and ranges of one lock owner, that are looked at under one lock.
constexpr std::uint32_t kPlacesAtOnce = 1024;
constexpr std::uint32_t kRangesAtOnce = 512;

bool matches(const StateFilter& filter, const State& state) {
  return (!filter.client || state.holder->life->clientid == *filter.client) &&
         (!filter.type || state.type == *filter.type);
}

// The ranges of a lock from `first` on. Yields where the next row begins, 0: there is none.
std::uint64_t fill_ranges(StateInfo& info, const LockState& lock, std::uint64_t first) {
  const auto& ranges = lock.owner->ranges;
  std::uint32_t looked_at = 0;
  for (auto at = ranges.lower_bound(first); at != ranges.end(); ++at) {
    if (++looked_at > kRangesAtOnce || info.ranges.size() == StatePage::kRangesOfRow)
      return at->first;
    if (at->second.via == &lock) info.ranges.emplace_back(at->second.range, at->second.exclusive);
  }
  return 0;
}

// As fill_ranges(), of a state of any type.
std::uint64_t fill(StateInfo& info, const State& state, std::uint64_t first) {
  info.type = state.type;
  info.clientid = state.holder->life->clientid;
  info.file = state.file->key;
  info.file.via = state.via;
  info.revoked = state.revoked;
  if (state.type == State::Type::Open) {
    const auto& open = static_cast<const OpenState&>(state);
    info.owner.assign(open.owner);
    info.share_access = open.access;
    info.share_deny = open.deny;
  } else if (state.type == State::Type::Delegation) {
    const auto& delegation = static_cast<const DelegationState&>(state);
    info.delegation_type = delegation.delegation_type;
    info.recalled = delegation.recalled;
  } else {
    const auto& lock = static_cast<const LockState&>(state);
    info.owner.assign(lock.owner->owner);
    if (lock.revoked == Status::Ok) return fill_ranges(info, lock, first);
  }
  return 0;
}

}  // namespace

StatePage::StatePage() : rows_(kRows) {
  for (StateInfo& row : rows_) {
    row.owner.reserve(kOwnerMax);
    row.ranges.reserve(kRangesOfRow);
  }
}

StateInfo& StatePage::add() {
  StateInfo& row = rows_[used_++];
  row.owner.clear();
  row.ranges.clear();
  row.share_access = row.share_deny = 0;
  row.recalled = false;
  return row;
}

void FileShard::list(StateCursor& at, const StateFilter& filter, StatePage& page) const {
  for (std::uint32_t i = 0; i < kPlacesAtOnce && !page.full(); ++i) {
    if (at.place >= table_.size()) {
      at = {at.shard + 1, 0, 0};
      return;
    }
    const State* const state = table_.at(at.place);
    std::uint64_t next = 0;
    if (state != nullptr && matches(filter, *state)) {
      StateInfo& row = page.add();
      next = fill(row, *state, at.first_byte);
      row.stateid = stateid_of(*state);
      // Of a lock that goes on from the row before there may be nothing left.
      if (row.ranges.empty() && (next != 0 || at.first_byte != 0)) page.drop();
    }
    if (next == 0) ++at.place;
    at.first_byte = next;
  }
}

bool Files::list(StateCursor& at, const StateFilter& filter, StatePage& page) const {
  page.clear();
  if (at.shard >= kFileShards) return false;
  const FileShard& shard = *impl_->shards[at.shard];
  const BriefLock lock(shard.mutex);
  shard.list(at, filter, page);
  return at.shard < kFileShards;
}

std::vector<StateInfo> Files::list(ClientId clientid, std::size_t most) const {
  std::vector<StateInfo> infos;
  StatePage page;
  StateCursor at;
  for (bool more = true; more && infos.size() < most;) {
    more = list(at, {clientid, std::nullopt}, page);
    const auto rows = page.rows().first(std::min(page.rows().size(), most - infos.size()));
    infos.insert(infos.end(), rows.begin(), rows.end());
  }
  return infos;
}

void Files::count_held(std::span<const ClientId> clients, std::span<HeldCounts> counts) const {
  std::fill(counts.begin(), counts.end(), HeldCounts{});
  for (const auto& shard : impl_->shards)
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const std::uint64_t hash = impl_->hash_of(clients[i]);
      const BriefLock lock(shard->mutex);
      const HolderRecord* const holder = shard->find_holder(clients[i], hash);
      if (holder == nullptr) continue;
      counts[i].opens += holder->held[static_cast<std::size_t>(State::Type::Open)];
      counts[i].locks += holder->ranges;
      counts[i].delegations += holder->held[static_cast<std::size_t>(State::Type::Delegation)];
    }
}

// Memory comes first: none is asked for under a lock.
std::vector<FileKey> Files::locked_by(const Life& life) const {
  const std::uint64_t hash = impl_->hash_of(life.clientid);
  std::vector<FileKey> found;
  for (const auto& shard : impl_->shards)
    for (std::size_t room = 0;;) {
      if (found.capacity() - found.size() < room)
        found.reserve(std::max(2 * found.capacity(), found.size() + room));
      const BriefLock lock(shard->mutex);
      const HolderRecord* const holder = shard->find_holder(life.clientid, hash);
      if (holder == nullptr) break;
      room = holder->held[static_cast<std::size_t>(State::Type::Lock)];
      if (found.capacity() - found.size() < room) continue;
      for (const State* one = holder->states.front(); one != nullptr;
           one = holder->states.next(*one)) {
        if (one->type != State::Type::Lock || static_cast<const LockState*>(one)->ranges == 0)
          continue;
        found.push_back(one->file->key);
        found.back().via = one->via;
      }
      break;
    }
  return found;
}

}  // namespace stag::nfs::state
