// Stateids as such: TEST_STATEID, FREE_STATEID, revocation, and the end of a client.
#include "nfs/state/file_shard.h"
#include "nfs/state/files.h"

namespace stag::nfs::state {

Status Files::test_stateid(const Stateid& stateid, const Life& life) {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  return shard.validate(stateid, life, nullptr, state);
}

Status Files::free_stateid(const Stateid& stateid, const Life& life) {
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  const Status status = shard.validate(stateid, life, nullptr, state);
  if (state == nullptr) return status;
  if (state->revoked == Status::Ok &&
      (state->type != State::Type::Lock || static_cast<LockState*>(state)->ranges > 0))
    return Status::LocksHeld;
  shard.remove(*state, removed);
  return Status::Ok;
}

Status Files::revoke(const Stateid& stateid) {
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(stateid);
  {
    const BriefLock lock(shard.mutex);
    State* const state = shard.find(stateid);
    if (state == nullptr) return Status::BadStateid;
    shard.revoke(*state, Status::AdminRevoked, removed);
  }
  freed(nullptr);
  return Status::Ok;
}

// A few at a time: others use the shard meanwhile, and the client adds nothing any more.
bool Files::release_some(FileShard& shard, const Life& life) {
  constexpr int kAtOnce = 256;
  const std::uint64_t hash = impl_->hash_of(life.clientid);
  RemovedRecords removed;
  const BriefLock lock(shard.mutex);
  for (int i = 0; i < kAtOnce; ++i) {
    HolderRecord* const holder = shard.find_holder(life.clientid, hash);
    if (holder == nullptr) return false;
    State* state = holder->states.front();
    if (state->type == State::Type::Open && !static_cast<OpenState*>(state)->locks.empty())
      state = static_cast<OpenState*>(state)->locks.front();
    shard.remove(*state, removed);
  }
  return true;
}

void Files::release(const Life& life) {
  for (const auto& shard : impl_->shards)
    while (release_some(*shard, life)) continue;
  freed(nullptr);
}

namespace {

StateInfo info_of(const FileShard& shard, const State& state) {
  StateInfo info;
  info.type = state.type;
  info.stateid = shard.stateid_of(state);
  info.file = state.file->key;
  info.revoked = state.revoked;
  if (state.type == State::Type::Open) {
    const auto& open = static_cast<const OpenState&>(state);
    info.owner = open.owner;
    info.share_access = open.access;
    info.share_deny = open.deny;
  } else if (state.type == State::Type::Delegation) {
    info.delegation_type = static_cast<const DelegationState&>(state).delegation_type;
  } else if (const auto& lock = static_cast<const LockState&>(state); lock.owner != nullptr) {
    info.owner = lock.owner->owner;
    for (const auto& [first, held] : lock.owner->ranges)
      if (held.via == &lock) info.ranges.emplace_back(held.range, held.exclusive);
  }
  return info;
}

}  // namespace

std::vector<StateInfo> Files::list(ClientId clientid, std::size_t most) const {
  std::vector<StateInfo> infos;
  const std::uint64_t hash = impl_->hash_of(clientid);
  for (const auto& shard : impl_->shards) {
    const BriefLock lock(shard->mutex);
    const HolderRecord* const holder = shard->find_holder(clientid, hash);
    if (holder == nullptr) continue;
    for (const State* state = holder->states.front(); state != nullptr && infos.size() < most;
         state = holder->states.next(*state))
      infos.push_back(info_of(*shard, *state));
  }
  return infos;
}

}  // namespace stag::nfs::state
