// What version 4.0 asks of a stateid: whose it is, and OPEN_CONFIRM.
#include "nfs/state/file_shard.h"
#include "nfs/state/files.h"
#include "nfs/state/seqid.h"

namespace stag::nfs::state {

StateHolder Files::holder_of(const Stateid& stateid) const {
  if (!is_of_epoch(stateid, impl_->options.epoch)) return {Status::StaleStateid, nullptr};
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  const State* const state = shard.find(stateid);
  if (state == nullptr) return {Status::BadStateid, nullptr};
  return {Status::Ok, state->holder->life};
}

std::string Files::owner_of(const Stateid& stateid) const {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  const State* const state = shard.find(stateid);
  if (state == nullptr) return {};
  if (state->type == State::Type::Open) return static_cast<const OpenState*>(state)->owner;
  if (state->type != State::Type::Lock) return {};
  return static_cast<const LockState*>(state)->owner->owner;
}

bool Files::is_open(const Stateid& stateid) const {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  const State* const state = shard.find(stateid);
  return state != nullptr && state->type == State::Type::Open;
}

StateidResult Files::open_confirm(const FileKey& file, const Stateid& stateid, const Life& life) {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  const Status status = shard.validate(stateid, life, &file, state);
  if (status != Status::Ok) return {status, {}};
  if (state->type != State::Type::Open) return {Status::BadStateid, {}};
  state->seqid = next_seqid(state->seqid);
  return {Status::Ok, shard.stateid_of(*state)};
}

void Files::cancel(const Stateid& stateid) {
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* const state = shard.find(stateid);
  if (state != nullptr && state->type == State::Type::Open) shard.remove(*state, removed);
}

bool Files::holds_ranges(const Stateid& stateid) const {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  const State* const state = shard.find(stateid);
  return state != nullptr && state->type == State::Type::Lock &&
         static_cast<const LockState*>(state)->ranges > 0;
}

}  // namespace stag::nfs::state
