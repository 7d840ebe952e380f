#include "nfs/state/file_shard.h"

namespace stag::nfs::state {
namespace {

// RFC 8881 8.2.2: numbers wrap around past zero, within as many slots as a client can have.
Status compare_seqid(std::uint32_t given, std::uint32_t current) {
  constexpr std::uint32_t kSlots = 1024;
  if (given == 0 || given == current) return Status::Ok;
  const bool wrapped =
      (given < kSlots && current > ~kSlots) || (current < kSlots && given > ~kSlots);
  return (given < current) != wrapped ? Status::OldStateid : Status::BadStateid;
}

// The client's counter of revoked states of this kind.
std::atomic<std::uint32_t>& revoked_of(const State& state) {
  Life& life = *state.holder->life;
  switch (state.revoked) {
    case Status::DelegRevoked:
      return life.recallable_revoked;
    case Status::Expired:
      return life.expired_revoked;
    default:
      return life.admin_revoked;
  }
}

Verdict lapsed(const Life& life) {
  return {Verdict::Kind::Lapsed, Status::Ok, life.clientid};
}

}  // namespace

std::optional<Range> locked_through(const State& state) {
  std::optional<Range> all;
  if (state.type == State::Type::Lock)
    return byte_ranges::hull_of(static_cast<const LockState&>(state));
  if (state.type == State::Type::Open)
    for (const LockState* lock = static_cast<const OpenState&>(state).locks.front();
         lock != nullptr; lock = static_cast<const OpenState&>(state).locks.next(*lock))
      all = hull(all, byte_ranges::hull_of(*lock));
  return all;
}

FileShard::~FileShard() {
  RemovedRecords all;
  holders_.for_each([&](HolderRecord& holder) {
    for (const auto* list : {&holder.states, &holder.revoked})
      for (State* state = list->front(); state; state = list->next(*state)) all.add(*state);
    all.add(holder);
  });
  lock_owners_.for_each([&](LockOwnerRecord& owner) { all.add(owner); });
  files_.for_each([&](FileRecord& file) {
    while (WaiterRecord* const waiter = file.waiters.front()) {
      remove(*waiter, all);
      waiter->gave_up = true;
    }
    all.add(file);
  });
}

FileRecord* FileShard::find_file(const FileKey& key, std::uint64_t hash) const {
  return files_.find(hash, [&](const FileRecord& file) { return file.key == key; });
}

HolderRecord* FileShard::find_holder(ClientId clientid, std::uint64_t hash) const {
  return holders_.find(
      hash, [&](const HolderRecord& holder) { return holder.life->clientid == clientid; });
}

OpenState* FileShard::find_open(std::uint64_t hash, ClientId clientid, const FileKey& file,
                                Bytes owner) const {
  return opens_.find(hash, [&](const OpenState& open) {
    return open.holder->life->clientid == clientid && open.owner == text_of(owner) &&
           open.file->key == file;
  });
}

LockOwnerRecord* FileShard::find_lock_owner(std::uint64_t hash, ClientId clientid,
                                            const FileKey& file, Bytes owner) const {
  return lock_owners_.find(hash, [&](const LockOwnerRecord& record) {
    return record.holder->life->clientid == clientid && record.owner == text_of(owner) &&
           record.file->key == file;
  });
}

DelegationState* FileShard::find_delegation(std::uint64_t hash, ClientId clientid,
                                            const FileKey& file) const {
  return delegations_.find(hash, [&](const DelegationState& delegation) {
    return delegation.holder->life->clientid == clientid && delegation.file->key == file;
  });
}

LockState* FileShard::find_lock(std::uint64_t hash, const OpenState& open,
                                const LockOwnerRecord& owner) const {
  return locks_.find(
      hash, [&](const LockState& lock) { return lock.open == &open && lock.owner == &owner; });
}

Stateid FileShard::stateid_of(const State& state) const {
  Stateid stateid{.seqid = state.seqid};
  store_be(stateid.other.data() + 4, table_.tag(state));
  store_be(stateid.other.data(), static_cast<std::uint16_t>(epoch_));
  store_be(stateid.other.data() + 2, state.place * kFileShards + number_);
  return stateid;
}

State* FileShard::find(const Stateid& stateid) const {
  if (!is_of_epoch(stateid, epoch_)) return nullptr;
  return table_.find(place_in(stateid) / kFileShards, tag_in(stateid));
}

Status FileShard::validate(const Stateid& stateid, const Life& life, const FileKey* file,
                           State*& state) const {
  State* const found = find(stateid);
  if (found == nullptr || found->holder->life->clientid != life.clientid) return Status::BadStateid;
  if (file != nullptr && found->file->key != *file) return Status::BadStateid;
  if (found->revoked != Status::Ok) return state = found, found->revoked;
  const Status status = compare_seqid(stateid.seqid, found->seqid);
  if (status == Status::Ok) state = found;
  return status;
}

void FileShard::add(State& state, FileRecord& file, HolderRecord& holder) {
  state.file = &file;
  state.holder = &holder;
  ++file.references;
  holder.states.push_front(state);
  table_.put(state);
  ++holder.held[static_cast<std::size_t>(state.type)];
  holder.count(static_cast<std::int32_t>(state.cost));
}

void FileShard::add(State& state, Spare& spare) {
  state.via = spare.file->key.via;
  FileRecord* file = find_file(spare.file->key, spare.file->hash);
  if (file == nullptr) files_.insert(*(file = spare.file.release()));
  HolderRecord* holder = find_holder(spare.holder->life->clientid, spare.holder->hash);
  if (holder == nullptr) holders_.insert(*(holder = spare.holder.release()));
  add(state, *file, *holder);
}

void FileShard::add(OpenState& open, Spare& spare) {
  add(static_cast<State&>(open), spare);
  open.file->opens.put(open);
  opens_.insert(open);
}

void FileShard::add(DelegationState& delegation, Spare& spare) {
  add(static_cast<State&>(delegation), spare);
  FileRecord& file = *delegation.file;
  file.delegations.push_front(delegation);
  ++file.delegated[static_cast<std::size_t>(delegation.delegation_type)];
  delegations_.insert(delegation);
  delegation.holder->life->delegations.fetch_add(1, std::memory_order_relaxed);
  delegation.holder->life->account->delegations.fetch_add(1, std::memory_order_relaxed);
  all_delegations_.fetch_add(1, std::memory_order_relaxed);
  guards_.fetch_add(1, std::memory_order_acq_rel);
}

void FileShard::add(LockOwnerRecord& owner, OpenState& open) {
  owner.file = open.file;
  owner.holder = open.holder;
  lock_owners_.insert(owner);
}

void FileShard::add(LockState& lock, OpenState& open, LockOwnerRecord& owner) {
  lock.open = &open;
  lock.owner = &owner;
  lock.via = open.via;
  ++owner.states;
  add(lock, *open.file, *open.holder);
  open.locks.push_front(lock);
  locks_.insert(lock);
}

void FileShard::set_share(OpenState& open, std::uint32_t access, std::uint32_t deny) {
  if (deny != 0 && open.deny == 0) guards_.fetch_add(1, std::memory_order_acq_rel);
  if (deny == 0 && open.deny != 0) guards_.fetch_sub(1, std::memory_order_acq_rel);
  open.file->opens.take(open);
  open.access = access;
  open.deny = deny;
  open.file->opens.put(open);
}

void FileShard::detach(OpenState& open) {
  set_share(open, 0, 0);
  open.file->opens.take(open);
  opens_.erase(open);
}

void FileShard::detach(LockState& lock) {
  byte_ranges::drop(lock);
  locks_.erase(lock);
  lock.open->locks.erase(lock);
  lock.open = nullptr;
}

void FileShard::detach(DelegationState& delegation, RemovedRecords& removed) {
  FileRecord& file = *delegation.file;
  set_untold(delegation, false);
  file.delegations.erase(delegation);
  --file.delegated[static_cast<std::size_t>(delegation.delegation_type)];
  delegations_.erase(delegation);
  delegation.holder->life->delegations.fetch_sub(1, std::memory_order_relaxed);
  delegation.holder->life->account->delegations.fetch_sub(1, std::memory_order_relaxed);
  all_delegations_.fetch_sub(1, std::memory_order_relaxed);
  guards_.fetch_sub(1, std::memory_order_acq_rel);
  if (delegation.lease != nullptr) removed.add(*delegation.lease.release());
  if (delegation.recalled) --file.recalled;
  while (WaiterRecord* const waiter = file.waiters.front()) remove(*waiter, removed);
}

void FileShard::detach(State& state, RemovedRecords& removed) {
  switch (state.type) {
    case State::Type::Open:
      return detach(static_cast<OpenState&>(state));
    case State::Type::Lock:
      return detach(static_cast<LockState&>(state));
    case State::Type::Delegation:
      return detach(static_cast<DelegationState&>(state), removed);
  }
}

// One of its states goes.
void FileShard::leave(LockOwnerRecord& owner, RemovedRecords& removed) {
  if (--owner.states > 0) return;
  lock_owners_.erase(owner);
  removed.add(owner);
}

// A state that is detached, unless it is revoked already.
void FileShard::remove_one(State& state, RemovedRecords& removed) {
  if (state.type == State::Type::Lock) leave(*static_cast<LockState&>(state).owner, removed);
  FileRecord& file = *state.file;
  HolderRecord& holder = *state.holder;
  if (state.revoked == Status::Ok) {
    holder.states.erase(state);
  } else {
    holder.revoked.erase(state);
    --holder.revoked_count;
    revoked_of(state).fetch_sub(1);
  }
  --holder.held[static_cast<std::size_t>(state.type)];
  holder.count(-static_cast<std::int32_t>(state.cost));
  table_.take(state);
  removed.add(state);
  if (holder.empty()) {
    holders_.erase(holder);
    removed.add(holder);
  }
  if (--file.references == 0) {
    files_.erase(file);
    removed.add(file);
  }
}

void FileShard::remove(State& state, RemovedRecords& removed) {
  if (state.revoked == Status::Ok) {
    if (state.type == State::Type::Open) {
      auto& open = static_cast<OpenState&>(state);
      while (LockState* const lock = open.locks.front()) remove(*lock, removed);
    }
    detach(state, removed);
  }
  remove_one(state, removed);
}

void FileShard::revoke(State& state, Status why, RemovedRecords& removed) {
  if (state.revoked != Status::Ok) return;
  if (state.type == State::Type::Open) {
    auto& open = static_cast<OpenState&>(state);
    while (LockState* const lock = open.locks.front()) revoke(*lock, why, removed);
  }
  detach(state, removed);
  HolderRecord& holder = *state.holder;
  holder.states.erase(state);
  holder.revoked.push_front(state);
  ++holder.revoked_count;
  state.revoked = why;
  revoked_of(state).fetch_add(1);
  if (holder.life->without_sessions) forget_revoked(holder, removed);
}

// Version 4.0 has no FREE_STATEID, and clients that recover by another OPEN never mention the
// former stateid again. Of many the client finds the first ones unknown.
void FileShard::forget_revoked(HolderRecord& holder, RemovedRecords& removed) {
  while (holder.revoked_count > kRevokedKept) {
    State* oldest = holder.revoked.front();
    while (State* const next = holder.revoked.next(*oldest)) oldest = next;
    remove(*oldest, removed);
  }
}

Status FileShard::refuse(State* state, Status status, RemovedRecords& removed) {
  const bool told = state != nullptr && state->revoked != Status::Ok;
  if (told && state->holder->life->without_sessions) remove(*state, removed);
  return status;
}

void FileShard::replace_revoked(const OpenState& fresh, RemovedRecords& removed) {
  State* next = nullptr;
  for (State* one = fresh.holder->revoked.front(); one != nullptr; one = next) {
    next = fresh.holder->revoked.next(*one);
    if (one->type != State::Type::Open || one->file != fresh.file) continue;
    if (static_cast<const OpenState*>(one)->owner == fresh.owner) remove(*one, removed);
  }
}

// What else goes with it nobody is told of before the client's release().
void FileShard::sweep(State& state, RemovedRecords& removed) {
  state.holder->life->swept.store(true, std::memory_order_relaxed);
  remove(state, removed);
}

Verdict FileShard::share_conflict(const FileKey& key, std::uint64_t hash, std::uint32_t access,
                                  std::uint32_t deny, const OpenState* except, Status status,
                                  RemovedRecords& removed) {
  for (;;) {
    const FileRecord* const file = find_file(key, hash);
    if (file == nullptr) return {};
    OpenState* const open = file->opens.find_conflict(
        access, deny, [except](const OpenState& one) { return &one != except; });
    if (open == nullptr) return {};
    const Life& life = *open->holder->life;
    if (life.lapsed()) return lapsed(life);
    if (!life.ended()) return Verdict::refused(status);
    sweep(*open, removed);
  }
}

LockResult FileShard::range_conflict(const FileKey& key, std::uint64_t hash,
                                     const LockOwnerRecord* owner, const Range& range,
                                     bool exclusive, RemovedRecords& removed) {
  for (;;) {
    const FileRecord* const file = find_file(key, hash);
    if (file == nullptr) return {};
    const auto conflict = byte_ranges::conflict(*file, owner, range, exclusive);
    if (!conflict) return {};
    const Life& life = *conflict->owner->holder->life;
    if (life.lapsed()) return {lapsed(life), {}, std::nullopt};
    const Held& held = conflict->held;
    if (!life.ended())
      return {Verdict::refused(Status::Denied),
              {},
              ConflictingLock{held.range, held.exclusive, life.clientid, conflict->owner->owner}};
    sweep(*held.via, removed);
  }
}

}  // namespace stag::nfs::state
