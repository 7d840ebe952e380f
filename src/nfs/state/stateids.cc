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
    State* state = holder->any();
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

}  // namespace stag::nfs::state
