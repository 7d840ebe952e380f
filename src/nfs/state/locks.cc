// The byte-range half of Files: LOCK, LOCKT, LOCKU.
#include <algorithm>

#include "nfs/state/file_shard.h"
#include "nfs/state/files.h"
#include "nfs/state/seqid.h"

namespace stag::nfs::state {
namespace {

LockResult refused_lock(Status status) {
  LockResult result;
  result.verdict = Verdict::refused(status);
  return result;
}

// Of a lock owner and an open; the owner's is keyed.
std::uint64_t lock_hash(std::uint64_t owner_hash, const OpenState& open) {
  return owner_hash ^ open.hash;
}

// A file may have as many locks as there are: not all are looked through for one holder.
constexpr int kLockersLookedAt = 64;

// As local file systems have it: shared locks are for readers, exclusive ones for writers.
bool mode_allows(const OpenState& open, bool exclusive) {
  return (open.access & (exclusive ? kShareWrite : kShareRead)) != 0;
}

}  // namespace

// What one LOCK works on, found or made.
struct Files::LockTarget {
  OpenState* open = nullptr;
  LockOwnerRecord* owner = nullptr;  // null: it is to be made
  LockState* lock = nullptr;         // null: it is to be made

  // Gives them the ranges; `fresh` ones are put where there is none. Where memory runs out, nothing
  // is changed.
  void hold(FileShard& shard, byte_ranges::Change change,
            std::unique_ptr<LockOwnerRecord>& fresh_owner, std::unique_ptr<LockState>& fresh_lock) {
    if (lock == nullptr) shard.make_room();
    byte_ranges::make_room(*open->file, owner == nullptr ? *fresh_owner : *owner, change);
    if (lock == nullptr) {
      if (owner == nullptr) shard.add(*(owner = fresh_owner.release()), *open);
      lock = fresh_lock.release();
      lock->hash = lock_hash(owner->hash, *open);
      shard.add(*lock, *open, *owner);
    } else {
      lock->seqid = next_seqid(lock->seqid);
    }
    byte_ranges::apply(*owner, change, *lock);
  }
};

Status Files::find_target(FileShard& shard, const LockArgs& args, const Life& life,
                          std::uint64_t owner_hash, LockTarget& target) {
  State* state = nullptr;
  const Status status = shard.validate(args.stateid, life, &args.file, state);
  if (status != Status::Ok) return status;
  if (state->type != (args.new_lock_owner ? State::Type::Open : State::Type::Lock))
    return Status::BadStateid;
  if (args.new_lock_owner) {
    target.open = static_cast<OpenState*>(state);
    target.owner = shard.find_lock_owner(owner_hash, life.clientid, args.file, args.lock_owner);
    // RFC 8881 18.10.3: or the client does not have the stateid available.
    if (target.owner != nullptr)
      target.lock =
          shard.find_lock(lock_hash(owner_hash, *target.open), *target.open, *target.owner);
  } else {
    target.lock = static_cast<LockState*>(state);
    target.open = target.lock->open;
    target.owner = target.lock->owner;
  }
  return mode_allows(*target.open, args.exclusive) ? Status::Ok : Status::Openmode;
}

LockResult Files::lock(const LockArgs& args, const LifePtr& life) {
  LockResult result = lock_asking(args, life);
  if (args.reclaim && result.verdict.granted() && (!args.only_asks || result.held))
    grace_->claimed(life->claimed_in);
  if (result.frees) freed(&args.file, args.range);
  return result;
}

LockResult Files::lock_asking(const LockArgs& args, const LifePtr& life) {
  if (auto locked = lock_if(args, life, false)) return *std::move(locked);
  const OutsideLock lock(*outside_);
  if (auto conflict = outside_->conflict(args.file, args.range, args.exclusive))
    return {Verdict::refused(args.reclaim ? Status::ReclaimConflict : Status::Denied),
            {},
            std::move(conflict)};
  return *lock_if(args, life, true);
}

std::optional<LockResult> Files::lock_if(const LockArgs& args, const LifePtr& life, bool asked) {
  const Status claim = may_claim(args.reclaim, *life, true);
  if (claim != Status::Ok) return refused_lock(claim);
  const std::uint64_t file_hash = impl_->hash_of(args.file);
  const std::uint64_t owner_hash = impl_->hash_of(file_hash, life->clientid, args.lock_owner);
  auto owner = std::make_unique<LockOwnerRecord>(owner_hash, args.lock_owner);
  auto fresh = std::make_unique<LockState>(args.lock_owner.size());
  const bool mirrored = is_mirrored(args.file);
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(args.stateid);
  const BriefLock guard(shard.mutex);
  if (life->ended()) return refused_lock(Status::Expired);
  const std::uint32_t access = args.exclusive ? kShareWrite : kShareRead;
  if (!args.reclaim && grace() &&
      !impl_->is_delegated(shard, args.file, file_hash, *life, access, 0))
    return refused_lock(Status::Grace);
  LockTarget target;
  const Status status = find_target(shard, args, *life, owner_hash, target);
  if (status != Status::Ok) return refused_lock(status);
  if (ask_others(asked)) return std::nullopt;
  LockResult result =
      shard.range_conflict(args.file, file_hash, target.owner, args.range, args.exclusive, removed);
  if (!result.verdict.granted()) {
    if (args.reclaim && result.conflict) result.verdict.status = Status::ReclaimConflict;
    return result;
  }
  auto change = byte_ranges::plan(target.owner, args.range, args.exclusive, target.lock);
  const std::int32_t more =
      change.net() + (target.lock == nullptr ? static_cast<std::int32_t>(fresh->cost) : 0);
  const FileRecord& locked = *target.open->file;
  result.limit = impl_->limit_of_ranges(locked, mirrored, *life, change.net(), more,
                                        args.reclaim ? Claim::Reclaimed : Claim::New);
  if (result.limit != Limit::None &&
      impl_->is_delegated(shard, args.file, file_hash, *life, access, 0))
    result.limit = impl_->limit_of_ranges(locked, mirrored, *life, change.net(), more, Claim::Held);
  if (result.limit != Limit::None) {
    result.verdict = Verdict::refused(Status::Delay);
    return result;
  }
  result.held = change.is_none();
  if (args.only_asks && !result.held) return result;
  const auto is_exclusive = [](const Held& held) { return held.exclusive; };
  result.frees = !args.exclusive && std::ranges::any_of(change.gone, is_exclusive);
  target.hold(shard, std::move(change), owner, fresh);
  result.stateid = shard.stateid_of(*target.lock);
  return result;
}

LockResult Files::test_lock(const FileKey& file, const Range& range, bool exclusive,
                            Bytes lock_owner, const Life& life) {
  if (grace()) return refused_lock(Status::Grace);
  if (ask_others(false)) {
    const OutsideLock lock(*outside_);
    if (auto conflict = outside_->conflict(file, range, exclusive))
      return {Verdict::refused(Status::Denied), {}, std::move(conflict)};
  }
  const std::uint64_t file_hash = impl_->hash_of(file);
  const std::uint64_t hash = impl_->hash_of(file_hash, life.clientid, lock_owner);
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(file_hash);
  const BriefLock guard(shard.mutex);
  const LockOwnerRecord* const owner = shard.find_lock_owner(hash, life.clientid, file, lock_owner);
  return shard.range_conflict(file, file_hash, owner, range, exclusive, removed);
}

LockResult Files::range_conflict(const FileKey& file, const Range& range, bool exclusive) {
  const std::uint64_t hash = impl_->hash_of(file);
  LockResult result;
  {
    RemovedRecords removed;
    FileShard& shard = impl_->shard_of(hash);
    const BriefLock guard(shard.mutex);
    result = shard.range_conflict(file, hash, nullptr, range, exclusive, removed);
    // A client that holds a delegation keeps its locks to itself.
    if (result.verdict.granted())
      result.verdict = shard.delegation_conflict(file, hash, exclusive ? Touch::Write : Touch::Read,
                                                 nullptr, removed);
  }
  if (result.verdict.kind == Verdict::Kind::Recall) tell_recalls(file);
  return result;
}

StateidResult Files::unlock(const FileKey& file, const Stateid& stateid, const Range& range,
                            const Life& life) {
  StateidResult result;
  byte_ranges::Change change;
  const bool mirrored = is_mirrored(file);
  {
    RemovedRecords removed;
    FileShard& shard = impl_->shard_of(stateid);
    const BriefLock guard(shard.mutex);
    State* state = nullptr;
    const Status status = shard.validate(stateid, life, &file, state);
    if (status != Status::Ok) return {shard.refuse(state, status, removed), {}};
    if (state->type != State::Type::Lock) return {Status::BadStateid, {}};
    auto& lock = static_cast<LockState&>(*state);
    // RFC 8881 9.5: whatever open it was locked through.
    change = byte_ranges::plan(lock.owner, range, std::nullopt, &lock);
    result.limit =
        impl_->limit_of_ranges(*lock.file, mirrored, life, change.net(), change.net(), Claim::Held);
    if (result.limit != Limit::None) {
      result.status = Status::Serverfault;
      return result;
    }
    byte_ranges::make_room(*lock.file, *lock.owner, change);
    byte_ranges::apply(*lock.owner, change, lock);
    lock.seqid = next_seqid(lock.seqid);
    result.stateid = shard.stateid_of(lock);
  }
  // Piece by piece: others may have locked much in between.
  for (const Held& gone : change.gone)
    unlocked(&file,
             {std::max(gone.range.first, range.first), std::min(gone.range.last, range.last)});
  if (!change.gone.empty()) freed(&file, std::nullopt);
  return result;
}

// Copied with the shard locked, for which memory is there before.
void Files::locked_in(const FileKey& file, const Range& range, RangeModes& to) const {
  const std::uint64_t hash = impl_->hash_of(file);
  FileShard& shard = impl_->shard_of(hash);
  for (std::size_t most = 64;; most *= 4) {
    std::vector<RangeModes::Piece> pieces;
    pieces.reserve(most);
    bool all = true;
    {
      const BriefLock guard(shard.mutex);
      const FileRecord* const record = shard.find_file(file, hash);
      if (record == nullptr) return;
      const auto copy = [&](RangeMode mode) {
        return [&pieces, &all, most, mode](const Range& held) {
          all = all && pieces.size() < most;
          if (all) pieces.push_back({held, mode});
          return all;
        };
      };
      record->shared.each(range, copy(RangeMode::Shared));
      record->exclusive.each(range, copy(RangeMode::Exclusive));
    }
    if (!all) continue;
    for (const RangeModes::Piece& piece : pieces) to.raise(piece.range, piece.mode);
    return;
  }
}

std::optional<std::string> Files::locker_at(const FileKey& file,
                                            const std::string& preferred) const {
  const std::uint64_t hash = impl_->hash_of(file);
  FileShard& shard = impl_->shard_of(hash);
  std::shared_ptr<const AddressAccount> found;
  {
    const BriefLock guard(shard.mutex);
    const FileRecord* const record = shard.find_file(file, hash);
    if (record == nullptr) return std::nullopt;
    int looked_at = 0;
    const auto look = [&](const LockOwnerRecord& owner) {
      const auto& account = owner.holder->life->account;
      if (found == nullptr || account->address == preferred) found = account;
      return found->address != preferred && ++looked_at < kLockersLookedAt;
    };
    record->shared.each_holder(look);
    if (found == nullptr || found->address != preferred) record->exclusive.each_holder(look);
  }
  if (found == nullptr) return std::nullopt;
  return found->address;
}

}  // namespace stag::nfs::state
