// The delegations of Files: granted, recalled, given back or revoked (RFC 8881 10.4).
#include <array>
#include <span>

#include "nfs/state/file_shard.h"
#include "nfs/state/files.h"

namespace stag::nfs::state {
namespace {

constexpr std::size_t kRead = static_cast<std::size_t>(DelegationType::Read);
constexpr std::size_t kWrite = static_cast<std::size_t>(DelegationType::Write);

bool is_in_the_way(const DelegationState& delegation, Touch touch) {
  return delegation.delegation_type == DelegationType::Write ||
         (touch != Touch::Read && touch != Touch::Look);
}

// The opens of a file that many have open are not all looked through: no delegation of it is given
// then, nor is one recalled for an open that is denied anyway.
constexpr std::size_t kOpensLookedAt = 64;

// Whether another client's open is against a delegation.
bool opened_by_others(const FileRecord& file, DelegationType type, const Life& life) {
  const bool reads = type == DelegationType::Read;
  std::size_t looked_at = 0;
  return file.opens.find_conflict(reads ? kShareRead : kShareBoth, reads ? kShareWrite : kShareBoth,
                                  [&](const OpenState& open) {
                                    return ++looked_at > kOpensLookedAt ||
                                           open.holder->life->clientid != life.clientid;
                                  }) != nullptr;
}

bool may_delegate(const FileRecord* file, DelegationType type, const Life& life) {
  if (file == nullptr) return true;
  if (file->delegated[kWrite] != 0) return false;
  if (type == DelegationType::Write && file->delegated[kRead] != 0) return false;
  // Another client wants one to be given back, even if it does not wait any more: it asks again.
  if (file->recalled != 0) return false;
  return !opened_by_others(*file, type, life);
}

}  // namespace

Verdict FileShard::delegation_conflict(const FileKey& key, std::uint64_t hash, Touch touch,
                                       const Life* by, RemovedRecords& removed, Effect effect) {
  Verdict verdict;
  FileRecord* file = find_file(key, hash);
  if (file == nullptr) return verdict;
  DelegationState* next = nullptr;
  for (DelegationState* one = file->delegations.front(); one != nullptr; one = next) {
    next = file->delegations.next(*one);
    const Life& life = *one->holder->life;
    if ((by != nullptr && life.clientid == by->clientid) || !is_in_the_way(*one, touch)) continue;
    if (life.lapsed()) return {Verdict::Kind::Lapsed, Status::Ok, life.clientid};
    if (life.ended()) {
      sweep(*one, removed);  // The last one may take the file's record with it.
      continue;
    }
    if (effect == Effect::Recalls) recall(*one);
    verdict = {Verdict::Kind::Recall, Status::Delay, life.clientid};
  }
  return verdict;
}

// False: it was before.
bool FileShard::mark_recalled(DelegationState& delegation) {
  if (std::exchange(delegation.recalled, true)) return false;
  ++delegation.file->recalled;
  return true;
}

void FileShard::recall(DelegationState& delegation) {
  if (mark_recalled(delegation)) set_untold(delegation, true);
}

// RFC 8881 10.4.4: who holds a delegation may not have closed yet what no program has open any
// more, and does so when it is recalled. Where another holder is in the way as well, that would
// help none.
Verdict Files::Impl::open_conflict(FileShard& shard, const FileKey& key, std::uint64_t file_hash,
                                   std::uint32_t access, std::uint32_t deny, const Life* by,
                                   RemovedRecords& removed) const {
  const Verdict verdict =
      shard.share_conflict(key, file_hash, access, deny, nullptr, Status::ShareDenied, removed);
  if (verdict.kind != Verdict::Kind::Refused) return verdict;
  const FileRecord& file = *shard.find_file(key, file_hash);
  if (file.delegations.empty()) return verdict;
  const auto delegation_of = [&](const Life& life) {
    return shard.find_delegation(hash_of(file_hash, life.clientid, {}), life.clientid, key);
  };
  std::array<DelegationState*, kOpensLookedAt> in_the_way{};
  std::size_t count = 0, looked_at = 0;
  const OpenState* const other = file.opens.find_conflict(access, deny, [&](const OpenState& open) {
    const Life& life = *open.holder->life;
    if (++looked_at > kOpensLookedAt || life.lapsed()) return true;
    if (life.ended()) return false;
    const bool own = by != nullptr && life.clientid == by->clientid;
    DelegationState* const delegation = own ? nullptr : delegation_of(life);
    in_the_way[count++] = delegation;
    return delegation == nullptr;
  });
  if (other != nullptr) {
    const Life& life = *other->holder->life;
    return life.lapsed() ? Verdict{Verdict::Kind::Lapsed, Status::Ok, life.clientid} : verdict;
  }
  Verdict recall{Verdict::Kind::Recall, Status::Delay, 0};
  for (DelegationState* const delegation : std::span(in_the_way).first(count)) {
    FileShard::recall(*delegation);
    recall.who = delegation->holder->life->clientid;
  }
  return recall;
}

bool Files::Impl::is_delegated(const FileShard& shard, const FileKey& key, std::uint64_t file_hash,
                               const Life& life, std::uint32_t access, std::uint32_t deny) const {
  const std::uint64_t hash = hash_of(file_hash, life.clientid, {});
  const DelegationState* const held = shard.find_delegation(hash, life.clientid, key);
  if (held == nullptr) return false;
  // Others may have read by theirs.
  const bool alone = (access & kShareWrite) != 0 || (deny & kShareRead) != 0;
  return held->delegation_type == DelegationType::Write || !alone;
}

void FileShard::hold_back(std::uint64_t hash, TimePoint until) {
  held_back_[place_of(hash)] = {hash, until};
}

bool FileShard::is_held_back(std::uint64_t hash, TimePoint now) const {
  const HeldBack& last = held_back_[place_of(hash)];
  return last.hash == hash && now < last.until;
}

std::optional<Recall> FileShard::next_recall(const FileKey& key, std::uint64_t hash) {
  const FileRecord* const file = find_file(key, hash);
  if (file == nullptr || file->untold.empty()) return std::nullopt;
  DelegationState& one = *file->untold.front();
  set_untold(one, false);
  return recall_of(one);
}

std::optional<Recall> FileShard::recall(const Stateid& stateid) {
  DelegationState* const one = find_delegation(stateid);
  if (one == nullptr || (one->recalled && !one->untold)) return std::nullopt;
  mark_recalled(*one);
  set_untold(*one, false);
  return recall_of(*one);
}

void FileShard::untell(const Stateid& stateid) {
  if (DelegationState* const one = find_delegation(stateid)) set_untold(*one, true);
}

DelegationState* FileShard::find_delegation(const Stateid& stateid) const {
  State* const state = find(stateid);
  if (state == nullptr || state->type != State::Type::Delegation || state->revoked != Status::Ok)
    return nullptr;
  return static_cast<DelegationState*>(state);
}

void FileShard::set_untold(DelegationState& delegation, bool untold) {
  if (std::exchange(delegation.untold, untold) == untold) return;
  auto& list = delegation.file->untold;
  untold ? list.push_front(delegation) : list.erase(delegation);
}

Recall FileShard::recall_of(const DelegationState& delegation) const {
  FileKey file = delegation.file->key;
  file.via = delegation.via;
  return {stateid_of(delegation),
          file,
          delegation.holder->life->clientid,
          delegation.granted_by,
          delegation.change,
          delegation.recalled};
}

const DelegationState* FileShard::write_delegation(const FileKey& key, std::uint64_t hash,
                                                   const Life* by) const {
  const FileRecord* const file = find_file(key, hash);
  if (file == nullptr || file->delegated[kWrite] == 0) return nullptr;
  // There is no other one beside it.
  const DelegationState& one = *file->delegations.front();
  const Life& life = *one.holder->life;
  const bool own = by != nullptr && life.clientid == by->clientid;
  return own || life.phase.load() != Life::Phase::Active ? nullptr : &one;
}

void Files::recall(const FileKey& file, Touch touch, const Life* by) {
  const std::uint64_t hash = impl_->hash_of(file);
  {
    RemovedRecords removed;
    FileShard& shard = impl_->shard_of(hash);
    const BriefLock lock(shard.mutex);
    shard.delegation_conflict(file, hash, touch, by, removed);
  }
  tell_recalls(file);
}

void Files::tell_recalls(const FileKey& file) {
  const std::uint64_t hash = impl_->hash_of(file);
  FileShard& shard = impl_->shard_of(hash);
  for (;;) {
    std::optional<Recall> recall;
    {
      const BriefLock lock(shard.mutex);
      recall = shard.next_recall(file, hash);
    }
    if (!recall) return;
    tell(*recall);
  }
}

void Files::tell(const Recall& recall) {
  try {
    if (told_) told_(recall);
  } catch (...) {
    recall_again(recall.stateid);
    throw;
  }
}

void Files::recall(const Stateid& delegation) {
  std::optional<Recall> recall;
  {
    FileShard& shard = impl_->shard_of(delegation);
    const BriefLock lock(shard.mutex);
    recall = shard.recall(delegation);
  }
  if (recall) tell(*recall);
}

void Files::hold_back(const FileKey& file, TimePoint until) {
  const std::uint64_t hash = impl_->hash_of(file);
  FileShard& shard = impl_->shard_of(hash);
  const BriefLock lock(shard.mutex);
  shard.hold_back(hash, until);
}

void Files::recall_again(const Stateid& stateid) {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  shard.untell(stateid);
}

StateidResult Files::delegate(const DelegateArgs& args, const LifePtr& life) {
  const StateidResult result = delegate_asking(args, life);
  if (args.reclaim && result.status == Status::Ok) grace_->claimed(life->claimed_in);
  return result;
}

StateidResult Files::delegate_asking(const DelegateArgs& args, const LifePtr& life) {
  if (!args.reclaim && grace()) return {Status::Grace, {}};
  if (auto delegated = delegate_if(args, life, false)) return *delegated;
  // Until it is given nobody adds anything there; who does so later meets it, and has it recalled.
  const OutsideLock lock(*outside_);
  if (!args.reclaim) {
    if (outside_->concerns(args.file)) return {Status::Denied, {}};
  } else if (outside_->conflict(args.file, Range{}, args.type == DelegationType::Write)) {
    return {Status::ReclaimConflict, {}};
  }
  return *delegate_if(args, life, true);
}

std::optional<StateidResult> Files::delegate_if(const DelegateArgs& args, const LifePtr& life,
                                                bool asked) {
  const std::uint64_t file_hash = impl_->hash_of(args.file);
  const std::uint64_t hash = impl_->hash_of(file_hash, life->clientid, {});
  auto fresh = std::make_unique<DelegationState>(args, hash);
  Spare spare = impl_->spare(args.file, file_hash, life);
  FileShard& shard = impl_->shard_of(file_hash);
  const BriefLock lock(shard.mutex);
  if (life->ended()) return StateidResult{Status::Expired, {}};
  if (ask_others(asked)) return std::nullopt;
  const DelegationState* const known = shard.find_delegation(hash, life->clientid, args.file);
  if (args.reclaim && known != nullptr && known->delegation_type == args.type)
    return StateidResult{Status::Ok, shard.stateid_of(*known)};
  const bool early = args.now < life->no_delegation_before.load(std::memory_order_relaxed) ||
                     shard.is_held_back(file_hash, args.now);
  if (early && !args.reclaim) return StateidResult{Status::Denied, {}};
  const AboutToGuard guard(&guards_);
  const bool changing = !args.reclaim && !changes_.slot_of(args.file).at_rest();
  if (known != nullptr || changing ||
      !may_delegate(shard.find_file(args.file, file_hash), args.type, *life))
    return StateidResult{args.reclaim ? Status::ReclaimConflict : Status::Denied, {}};
  const auto cost = static_cast<std::int32_t>(fresh->cost);
  const Limit limit = args.reclaim ? impl_->limit_at(*life, cost, Claim::Reclaimed)
                                   : impl_->limit_of_delegations(*life, cost);
  if (limit != Limit::None) return StateidResult{Status::Delay, {}, limit};
  shard.make_room();
  DelegationState& made = *fresh.release();
  shard.add(made, spare);
  const bool over = args.reclaim && impl_->delegations.load(std::memory_order_relaxed) >
                                        impl_->current.delegations.load(std::memory_order_relaxed);
  return StateidResult{Status::Ok, shard.stateid_of(made), over ? Limit::All : Limit::None};
}

void Files::keep_lease(const Stateid& delegation, std::shared_ptr<vfs::Lease> lease) {
  auto kept = std::make_unique<LeaseRecord>(std::move(lease));
  FileShard& shard = impl_->shard_of(delegation);
  const BriefLock lock(shard.mutex);
  if (DelegationState* const one = shard.find_delegation(delegation)) one->lease.swap(kept);
}

Status Files::return_delegation(const FileKey& file, const Stateid& stateid, const Life& life) {
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(stateid);
  {
    const BriefLock lock(shard.mutex);
    State* state = nullptr;
    const Status status = shard.validate(stateid, life, &file, state);
    if (status != Status::Ok) return shard.refuse(state, status, removed);
    if (state->type != State::Type::Delegation) return Status::BadStateid;
    shard.remove(*state, removed);
  }
  freed(&file, std::nullopt);
  return Status::Ok;
}

std::optional<Recall> Files::write_delegation(const FileKey& file, const Life* by) const {
  if (!guarded()) return std::nullopt;
  const std::uint64_t hash = impl_->hash_of(file);
  const FileShard& shard = impl_->shard_of(hash);
  const BriefLock lock(shard.mutex);
  const DelegationState* const one = shard.write_delegation(file, hash, by);
  if (one == nullptr) return std::nullopt;
  return shard.recall_of(*one);
}

std::optional<DelegationType> Files::delegation_of(const FileKey& file, const Life& life) const {
  const std::uint64_t file_hash = impl_->hash_of(file);
  const std::uint64_t hash = impl_->hash_of(file_hash, life.clientid, {});
  const FileShard& shard = impl_->shard_of(file_hash);
  const BriefLock lock(shard.mutex);
  const DelegationState* const found = shard.find_delegation(hash, life.clientid, file);
  if (found == nullptr) return std::nullopt;
  return found->delegation_type;
}

Status Files::check_delegation(const FileKey& file, const Stateid& stateid, const Life& life) {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  const Status status = shard.validate(stateid, life, &file, state);
  if (status != Status::Ok) return status;
  return state->type == State::Type::Delegation ? Status::Ok : Status::BadStateid;
}

DelegationWait::~DelegationWait() {
  RemovedRecords removed;
  const BriefLock lock(shard_.mutex);
  WaiterRecord* const waiter = waiter_;
  if (waiter == nullptr) return;
  FileShard::remove(*waiter, removed);
  waiter->gave_up = true;
}

void FileShard::add(WaiterRecord& waiter, FileRecord& file) {
  waiter.gave_up = false;
  waiter.file = &file;
  file.waiters.push_front(waiter);
  ++file.waiting;
}

void FileShard::remove(WaiterRecord& waiter, RemovedRecords& removed) {
  waiter.file->waiters.erase(waiter);
  --waiter.file->waiting;
  waiter.place->waiter_ = nullptr;
  removed.add(waiter);
}

Waiting Files::wait(const FileKey& file, UniqueFunction<void()> done) {
  // First: what is stopped has not met the delegations yet, and has them not recalled.
  ChangeSlot& slot = changes_.slot_of(file);
  if (slot.stopped())
    return slot.wait(ChangeSlot::Event::GoingOn, impl_->options.limits.waiting, std::move(done));
  const std::uint64_t hash = impl_->hash_of(file);
  FileShard& shard = impl_->shard_of(hash);
  auto fresh = std::make_unique<WaiterRecord>(std::move(done));
  auto place = std::make_unique<DelegationWait>(shard, *fresh);
  Wait refused = Wait::NoNeed;
  {
    const BriefLock lock(shard.mutex);
    FileRecord* const record = shard.find_file(file, hash);
    const bool is_delegated = record != nullptr && !record->delegations.empty();
    if (is_delegated && record->waiting < impl_->options.limits.waiting) {
      FileShard::add(*fresh.release(), *record);
      return {Wait::Begun, std::move(place)};
    }
    if (is_delegated) refused = Wait::TooMany;
    place->cancel();
  }
  return refused;
}

bool Files::is_delegated(const Stateid& stateid) const {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  const State* const state = shard.find(stateid);
  return state != nullptr && state->revoked == Status::Ok;
}

void Files::revoke_delegation(const Stateid& stateid) {
  RemovedRecords removed;
  FileKey file;
  FileShard& shard = impl_->shard_of(stateid);
  {
    const BriefLock lock(shard.mutex);
    State* const state = shard.find(stateid);
    if (state == nullptr || state->type != State::Type::Delegation) return;
    file = state->file->key;
    // Version 4.0 has no FREE_STATEID.
    if (state->holder->life->without_sessions)
      shard.remove(*state, removed);
    else
      shard.revoke(*state, Status::DelegRevoked, removed);
  }
  freed(&file, std::nullopt);
}

}  // namespace stag::nfs::state
