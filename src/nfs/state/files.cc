#include "nfs/state/files.h"

#include <algorithm>
#include <cstring>

#include "nfs/state/file_shard.h"
#include "nfs/state/seqid.h"

namespace stag::nfs::state {
namespace {

// What part of all states an address may have though others hold more than the limit (decision
// 0085).
constexpr std::uint32_t kLittle = 128;

}  // namespace

void CurrentStateLimits::replace(const StateLimits& limits) {
  states_of_client.store(limits.states_of_client, std::memory_order_relaxed);
  states_of_address.store(limits.states_of_address, std::memory_order_relaxed);
  states.store(limits.states, std::memory_order_relaxed);
  delegations.store(limits.delegations, std::memory_order_relaxed);
  shared_out.store(limits.shared_out, std::memory_order_relaxed);
}

Files::Impl::Impl(const Options& given, std::atomic<std::uint32_t>& guards) : options(given) {
  for (std::uint32_t i = 0; i < kFileShards; ++i)
    shards[i] = std::make_unique<FileShard>(i, options, guards, delegations);
}

std::uint64_t Files::Impl::hash_of(const FileKey& key) const {
  SipHash hash(options.key);
  hash.add(std::as_bytes(std::span(&key.store, 1)));
  hash.add(key.handle.bytes());
  return hash.finish();
}

std::uint64_t Files::Impl::hash_of(ClientId clientid) const {
  return siphash(options.key, std::as_bytes(std::span(&clientid, 1)));
}

std::uint64_t Files::Impl::hash_of(std::uint64_t file_hash, ClientId clientid, Bytes owner) const {
  SipHash hash(options.key);
  hash.add(std::as_bytes(std::span(&file_hash, 1)));
  hash.add(std::as_bytes(std::span(&clientid, 1)));
  hash.add(owner);
  return hash.finish();
}

Spare Files::Impl::spare(const FileKey& key, std::uint64_t file_hash, const LifePtr& life) {
  return {std::make_unique<FileRecord>(key, file_hash),
          std::make_unique<HolderRecord>(life, hash_of(life->clientid), states)};
}

// Threads that ask at the same time may all get the last one.
Limit Files::Impl::limit_at(const Life& life, std::int32_t more, Claim claim) const {
  if (more <= 0) return Limit::None;
  const auto by = static_cast<std::uint32_t>(more);
  const std::uint64_t of_client = current.states_of_client.load(std::memory_order_relaxed);
  const std::uint64_t of_address = current.states_of_address.load(std::memory_order_relaxed);
  const std::uint64_t limit = current.states.load(std::memory_order_relaxed);
  const std::uint64_t times = claim == Claim::New ? 1 : 2;
  const std::uint64_t own = life.account->states.load(std::memory_order_relaxed);
  if (life.states.load(std::memory_order_relaxed) + by > times * of_client) return Limit::Client;
  // An address that reclaims what it never had leaves room for what all others had.
  const std::uint64_t times_of_address = claim == Claim::Held ? 2 : 1;
  if (own + by > times_of_address * of_address) return Limit::Address;
  const std::uint64_t all = states.load(std::memory_order_relaxed);
  // What others hold beyond the limit of what is new leaves a little to each address.
  const bool little = own + by <= limit / kLittle;
  const std::uint64_t most = (little ? 2 : times) * limit;
  // Of all: where others that lapsed go, it may have more.
  const bool fits = current.shared_out.load(std::memory_order_relaxed)
                        ? leaves_enough<std::uint64_t>(own, all, by, most)
                        : all + by <= most;
  return fits ? Limit::None : Limit::All;
}

Limit Files::Impl::limit_of_delegations(const Life& life, std::int32_t more) const {
  const std::uint32_t limit = current.delegations.load(std::memory_order_relaxed);
  const std::uint32_t own = life.account->delegations.load(std::memory_order_relaxed);
  if (!leaves_enough(own, delegations.load(std::memory_order_relaxed), 1u, limit))
    return own + 1 > (limit + 1) / 2 ? Limit::Address : Limit::All;
  return limit_at(life, more);
}

Limit Files::Impl::limit_of_ranges(const FileRecord& file, bool mirrored, const Life& life,
                                   std::int32_t ranges, std::int32_t more, Claim claim) const {
  const auto after = static_cast<std::int64_t>(file.ranges) + ranges;
  if (mirrored && ranges > 0 && after > options.limits.ranges_of_mirrored) return Limit::File;
  return limit_at(life, more, claim);
}

Files::Files(const Options& options)
    : grace_(options.grace),
      changes_(siphash(options.key, {})),
      impl_(std::make_unique<Impl>(options, guards_)) {}
Files::~Files() = default;

void Files::change_limits(const StateLimits& limits) {
  impl_->current.replace(limits);
}

std::uint32_t Files::states() const {
  return impl_->states.load(std::memory_order_relaxed);
}

namespace {

bool valid_share(std::uint32_t access, std::uint32_t deny) {
  return access >= kShareRead && access <= kShareBoth && deny <= kShareBoth;
}

// RFC 8881 18.18.3: the bits of some of the OPENs in effect, together.
bool is_union(std::uint32_t bits, std::uint8_t opened) {
  std::uint32_t together = 0;
  bool any = false;
  for (std::uint32_t value = 0; value <= kShareBoth; ++value) {
    if ((opened >> value & 1) == 0 || (value & ~bits) != 0) continue;
    together |= value;
    any = true;
  }
  return any && together == bits;
}

// The OPENs in effect that ask for no more than these bits.
std::uint8_t within(std::uint8_t opened, std::uint32_t bits) {
  for (std::uint32_t value = 0; value <= kShareBoth; ++value)
    if ((value & ~bits) != 0) opened = static_cast<std::uint8_t>(opened & ~(1u << value));
  return opened;
}

void note(OpenState& open, std::uint32_t access, std::uint32_t deny) {
  open.accesses_opened = static_cast<std::uint8_t>(open.accesses_opened | 1u << access);
  open.denies_opened = static_cast<std::uint8_t>(open.denies_opened | 1u << deny);
}

std::uint32_t bits_of(Touch touch) {
  switch (touch) {
    case Touch::Read:
      return kShareRead;
    case Touch::Write:
    case Touch::Size:
      return kShareWrite;
    default:
      return 0;
  }
}

// What an OPEN does to the delegations of others (RFC 8881 10.4): who may not share it for reading
// is in the way of those who read by delegation.
Touch touch_of(std::uint32_t share_access, std::uint32_t share_deny) {
  const bool changes = (share_access & kShareWrite) != 0 || (share_deny & kShareRead) != 0;
  return changes ? Touch::Write : Touch::Read;
}
Touch touch_of(const OpenArgs& args) {
  return args.truncates ? Touch::Write : touch_of(args.share_access, args.share_deny);
}

bool allows(const DelegationState& delegation, std::uint32_t bits) {
  return delegation.delegation_type == DelegationType::Write || (bits & kShareWrite) == 0;
}

// What it does to the file, shares included: one that truncates writes, whatever it opens for.
std::uint32_t access_of(const OpenArgs& args) {
  return args.share_access | (args.truncates ? kShareWrite : 0);
}

// Versions 2 and 3 write in a grace period, whatever is to be reclaimed.
bool is_against_changes(const OpenArgs& args) {
  return (args.share_deny & kShareWrite) != 0 && !args.reclaim;
}

Claim claim_of(const OpenArgs& args) {
  if (args.reclaim) return Claim::Reclaimed;
  return args.delegated ? Claim::Held : Claim::New;
}

OpenResult refused_open(Status status) {
  OpenResult result;
  result.verdict = Verdict::refused(status);
  return result;
}

}  // namespace

Status Files::may_claim(bool reclaim, const Life& life, bool delegated) const {
  const bool complete = life.reclaim_complete.load(std::memory_order_acquire);
  if (!reclaim) {
    const bool may_not = (grace() && !delegated) || !(complete || life.without_sessions);
    return may_not ? Status::Grace : Status::Ok;
  }
  if (!grace()) return Status::NoGrace;
  // A later grace period, for adopted clients, is none for what was lost in the one before.
  if (life.may_reclaim.load(std::memory_order_acquire) && !life.cut_off.load()) return Status::Ok;
  return complete ? Status::NoGrace : Status::ReclaimBad;
}

OpenResult Files::open(const OpenArgs& args, const LifePtr& life) {
  OpenResult result = open_asking(args, life);
  if (result.verdict.kind == Verdict::Kind::Recall) tell_recalls(args.file);
  if (args.reclaim && result.verdict.granted()) grace_->claimed(life->claimed_in);
  return result;
}

OpenResult Files::open_asking(const OpenArgs& args, const LifePtr& life) {
  if (auto opened = open_if(args, life, false)) return *std::move(opened);
  const OutsideLock lock(*outside_);
  if (outside_->share_conflict(args.file, access_of(args), args.share_deny))
    return refused_open(args.reclaim ? Status::ReclaimConflict : Status::ShareDenied);
  return *open_if(args, life, true);
}

std::optional<OpenResult> Files::open_if(const OpenArgs& args, const LifePtr& life, bool asked) {
  if (!valid_share(args.share_access, args.share_deny)) return refused_open(Status::Inval);
  const Status claim = may_claim(args.reclaim, *life, args.delegated);
  if (claim != Status::Ok) return refused_open(claim);
  const std::uint64_t file_hash = impl_->hash_of(args.file);
  const std::uint64_t hash = impl_->hash_of(file_hash, life->clientid, args.open_owner);
  auto fresh = std::make_unique<OpenState>(hash, args.open_owner);
  Spare spare = impl_->spare(args.file, file_hash, life);
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(file_hash);
  const BriefLock lock(shard.mutex);
  if (life->ended()) return refused_open(Status::Expired);
  if (args.delegated && grace() &&
      !impl_->is_delegated(shard, args.file, file_hash, *life, access_of(args), args.share_deny))
    return refused_open(Status::Grace);
  if (ask_others(asked)) return std::nullopt;
  OpenResult result;
  // What is claimed again is not waited for.
  result.verdict =
      args.reclaim ? shard.share_conflict(args.file, file_hash, access_of(args), args.share_deny,
                                          nullptr, Status::ReclaimConflict, removed)
                   : impl_->open_conflict(shard, args.file, file_hash, access_of(args),
                                          args.share_deny, life.get(), removed);
  if (!result.verdict.granted()) return result;
  result.verdict =
      shard.delegation_conflict(args.file, file_hash, touch_of(args), life.get(), removed);
  if (!result.verdict.granted()) return result;
  const AboutToGuard guard(is_against_changes(args) ? &guards_ : nullptr);
  meet_changes(args, result);
  if (!result.verdict.granted()) return result;
  OpenState* open = shard.find_open(hash, life->clientid, args.file, args.open_owner);
  if (open == nullptr) {
    result.limit = impl_->limit_at(*life, static_cast<std::int32_t>(fresh->cost - args.reserved),
                                   claim_of(args));
    if (result.limit != Limit::None) {
      result.verdict = Verdict::refused(Status::Delay);
      result.truncation.end();
      return result;
    }
    shard.make_room();
    open = fresh.release();
    shard.add(*open, spare);
    if (life->without_sessions) shard.replace_revoked(*open, removed);
  } else {
    // RFC 8881 9.9: one open, with the bits of both.
    result.before = {open->access, open->deny, open->accesses_opened, open->denies_opened};
    open->seqid = next_seqid(open->seqid);
  }
  note(*open, args.share_access, args.share_deny);
  shard.set_share(*open, open->access | args.share_access, open->deny | args.share_deny);
  result.stateid = shard.stateid_of(*open);
  return result;
}

ReserveResult Files::reserve_open(Bytes open_owner, const LifePtr& life) {
  const std::uint32_t count = State::cost_of(open_owner.size());
  const Limit limit = impl_->limit_at(*life, static_cast<std::int32_t>(count));
  if (limit != Limit::None) return {limit, {}};
  return {Limit::None, {life, impl_->states, count}};
}

void Files::meet_changes(const OpenArgs& args, OpenResult& result) {
  if (is_against_changes(args) && changes_.slot_of(args.file).data_in_progress()) {
    result.verdict = Verdict::refused(Status::Delay);
    result.changing = true;
  } else if (args.truncates && args.stopped) {
    result.truncation = changes_.begin_though_stopped(args.file);
  } else if (args.truncates) {
    auto begun = changes_.begin(args.file, ChangeOf::Data);
    if (begun)
      result.truncation = *std::move(begun);
    else
      result.verdict = kChangesStopped;
  }
}

Waiting Files::wait_for_changes(const FileKey& file, UniqueFunction<void()> done) {
  return changes_.slot_of(file).wait(ChangeSlot::Event::DataAtRest, impl_->options.limits.waiting,
                                     std::move(done));
}

// What another open has added in between stands: its caller has the stateid with a later number.
void Files::undo(const OpenResult& opened) {
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(opened.stateid);
  const BriefLock lock(shard.mutex);
  State* const state = shard.find(opened.stateid);
  if (state == nullptr || state->revoked != Status::Ok || state->seqid != opened.stateid.seqid)
    return;
  if (opened.before.access == 0) return shard.remove(*state, removed);
  auto& open = static_cast<OpenState&>(*state);
  open.seqid = previous_seqid(open.seqid);
  open.accesses_opened = opened.before.accesses_opened;
  open.denies_opened = opened.before.denies_opened;
  shard.set_share(open, opened.before.access, opened.before.deny);
}

StateidResult Files::open_downgrade(const FileKey& file, const Stateid& stateid,
                                    std::uint32_t share_access, std::uint32_t share_deny,
                                    const Life& life) {
  if (!valid_share(share_access, share_deny)) return {Status::Inval, {}};
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  const Status status = shard.validate(stateid, life, &file, state);
  if (status != Status::Ok) return {status, {}};
  if (state->type != State::Type::Open) return {Status::BadStateid, {}};
  auto& open = static_cast<OpenState&>(*state);
  if (!is_union(share_access, open.accesses_opened) || !is_union(share_deny, open.denies_opened))
    return {Status::Inval, {}};
  open.accesses_opened = within(open.accesses_opened, share_access);
  open.denies_opened = within(open.denies_opened, share_deny);
  shard.set_share(open, share_access, share_deny);
  open.seqid = next_seqid(open.seqid);
  return {Status::Ok, shard.stateid_of(open)};
}

StateidResult Files::close(const FileKey& file, const Stateid& stateid, const Life& life) {
  RemovedRecords removed;
  std::optional<Range> locked;
  FileShard& shard = impl_->shard_of(stateid);
  {
    const BriefLock lock(shard.mutex);
    State* state = nullptr;
    const Status status = shard.validate(stateid, life, &file, state);
    if (status != Status::Ok) return {shard.refuse(state, status, removed), {}};
    if (state->type != State::Type::Open) return {Status::BadStateid, {}};
    locked = locked_through(*state);
    shard.remove(*state, removed);
  }
  freed(&file, locked);
  return {Status::Ok, kInvalidStateid};
}

Permit Files::check(const FileKey& file, const Stateid& stateid, const Life& life, Touch touch) {
  auto change = begin_change(file, touch);
  if (!change) return {kChangesStopped, {}};
  return {checked(file, stateid, life, touch), *std::move(change)};
}

namespace {

// g++ compares arrays of bytes one by one.
bool is_same(const Stateid& one, const Stateid& other) {
  return one.seqid == other.seqid &&
         std::memcmp(one.other.data(), other.other.data(), one.other.size()) == 0;
}

}  // namespace

Verdict Files::checked(const FileKey& file, const Stateid& stateid, const Life& life, Touch touch) {
  const bool bypass = is_same(stateid, kBypassStateid);
  if (bypass || is_same(stateid, kAnonymousStateid)) {
    // What share reservations will be reclaimed is not known yet.
    if (grace() && bits_of(touch) != 0) return Verdict::refused(Status::Grace);
    if (bypass && touch == Touch::Read) touch = Touch::Look;
    return guarded() ? guarded_access(file, touch, &life) : Verdict{};
  }
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  const Status status = shard.validate(stateid, life, &file, state);
  if (status != Status::Ok) return Verdict::refused(status);
  const std::uint32_t bits = bits_of(touch);
  if (state->type == State::Type::Delegation)
    return allows(static_cast<const DelegationState&>(*state), bits)
               ? Verdict{}
               : Verdict::refused(Status::Openmode);
  const OpenState& open = open_of(*state);
  if ((open.access & bits) == bits) return {};
  if (bits == kShareWrite) return Verdict::refused(Status::Openmode);
  // RFC 8881 9.1.2: who opened for writing may read, for clients fill their pages, unless another
  // share denies it.
  return shard.share_conflict(file, open.file->hash, bits, 0, &open, Status::Locked, removed);
}

Verdict Files::guarded_access(const FileKey& file, Touch touch, const Life* by) {
  const std::uint32_t bits = bits_of(touch);
  const std::uint64_t hash = impl_->hash_of(file);
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(hash);
  const BriefLock lock(shard.mutex);
  if (bits != 0) {
    const Verdict verdict =
        shard.share_conflict(file, hash, bits, 0, nullptr, Status::Locked, removed);
    if (!verdict.granted()) return verdict;
  }
  return shard.delegation_conflict(file, hash, touch, by, removed, FileShard::Effect::None);
}

Verdict Files::share_conflict(const FileKey& file, std::uint32_t share_access,
                              std::uint32_t share_deny) {
  const std::uint64_t hash = impl_->hash_of(file);
  Verdict verdict;
  {
    RemovedRecords removed;
    FileShard& shard = impl_->shard_of(hash);
    const BriefLock lock(shard.mutex);
    verdict = impl_->open_conflict(shard, file, hash, share_access, share_deny, nullptr, removed);
    // A client that holds a delegation keeps its opens to itself.
    if (verdict.granted())
      verdict = shard.delegation_conflict(file, hash, touch_of(share_access, share_deny), nullptr,
                                          removed);
  }
  if (verdict.kind == Verdict::Kind::Recall) tell_recalls(file);
  return verdict;
}

}  // namespace stag::nfs::state
