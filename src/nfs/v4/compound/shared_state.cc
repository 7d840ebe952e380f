#include "nfs/v4/compound/shared_state.h"

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/reason.h"
#include "nfs/state/listing.h"
#include "nfs/v4/compound/ending.h"
#include "nfs/v4/compound/lapsed_locks.h"
#include "nfs/v4/compound/lease_timer.h"

namespace stag::nfs::nfs4 {

namespace {

// How long after a lease a delegation has gone that was recalled, or a client that had lapsed.
constexpr Duration kRevokedAfter = std::chrono::seconds(10);

std::uint32_t epoch_of(const ServerContext& context, const Nfs4Options& options) {
  return options.recovery != nullptr ? options.recovery->epoch()
                                     : static_cast<std::uint32_t>(context.boot_verifier);
}

}  // namespace

SharedState::SharedState(const ServerContext& context, const Nfs4Options& wanted)
    : server(context),
      options(wanted),
      clients({.epoch = epoch_of(context, wanted),
               .lease = std::chrono::seconds(wanted.lease_seconds),
               .courtesy = std::chrono::seconds(wanted.courtesy_seconds),
               .key = process_sip_key(),
               .limits = wanted.clients}),
      files({.epoch = epoch_of(context, wanted),
             .key = process_sip_key(),
             .limits = wanted.states,
             .grace = wanted.grace}),
      copy_notices(files, {.epoch = epoch_of(context, wanted),
                           .key = process_sip_key(),
                           .lease = std::chrono::seconds(wanted.lease_seconds),
                           .limits = {}}),
      local_locks_(server.local_locks->add(
          {[this](const state::FileKey& file, const state::Range& range, state::RangeModes& to) {
             files.locked_in(file, range, to);
           },
           [this](const state::FileKey& file, const std::string& preferred) {
             return files.locker_at(file, preferred);
           }})) {
  files.mirror_to(server.local_locks.get());
  options.grace->watch_by([this] { watch_leases(); });
  if (options.recovery != nullptr)
    options.grace->finish_by(
        [this](std::uint64_t number, TimePoint now) { finish_grace(number, now); });
  server.gate->guard(
      files, [this](state::ClientId client) { end_lapsed(client, EndedFor::Conflict); },
      [this] { recall_removed(); }, std::chrono::seconds(wanted.lease_seconds) + kRevokedAfter);
}

std::uint32_t SharedState::epoch() const {
  return epoch_of(server, options);
}

SharedState::~SharedState() {
  server.gate->open();
  if (options.recovery != nullptr) options.recovery->drain();
  files.mirror_to(nullptr);
  server.local_locks->remove(local_locks_);
}

std::shared_ptr<const PseudoFs> SharedState::pseudo_fs() {
  const auto exports = server.exports.current();
  {
    const std::lock_guard lock(mutex_);
    if (exports_.lock() == exports) return pseudo_fs_;
  }
  auto made = std::make_shared<const PseudoFs>(*exports, server.handles, epoch());
  const std::lock_guard lock(mutex_);
  exports_ = exports;
  pseudo_fs_ = made;
  return made;
}

namespace {

// A client for which memory runs out keeps no other from its turn.
template <class Work>
void attempt(Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    // A client that is still there is returned by Clients::expire() again.
  }
}

}  // namespace

void SharedState::expire(TimePoint now) {
  constexpr Duration kInterval = std::chrono::seconds(1);
  const TimePoint::rep time = now.time_since_epoch().count();
  TimePoint::rep due = next_expiry_.load(std::memory_order_relaxed);
  if (time < due || !next_expiry_.compare_exchange_strong(due, time + kInterval.count())) return;
  // The last one that could claim something may have been ended by a worker, which has no clock.
  if (options.grace->active(now) && options.recovery != nullptr &&
      !options.recovery->anybody_left())
    options.grace->nobody_left(now);
  if (options.recovery != nullptr) options.recovery->remove_again();
  if (now_and_then) now_and_then();
  watch_leases();
  files.tell_again();
  if (unrecalled_) recall_removed();
  copy_notices.expire(now);
  std::vector<state::LifePtr> lapsed;
  for (const state::LifePtr& over : clients.expire(now, &lapsed))
    attempt([&] {
      if (over->ended())
        release(over);
      else
        end_lapsed(over->clientid, over->wanted.load());
    });
  for (const state::LifePtr& life : lapsed)
    if (keeps_programs_out(*life)) attempt([&] { make_way_for_programs(life); });
  if (!lapsed.empty()) files.tell_of_lapse();
}

void SharedState::recall_removed() noexcept {
  unrecalled_ = false;
  try {
    recall_unserved();
  } catch (const std::bad_alloc&) {
    unrecalled_ = true;
  }
}

void SharedState::recall_unserved() {
  const auto exports = server.exports.current();
  state::StateCursor at;
  state::StatePage page;
  for (bool more = true; more;) {
    more = files.list(at, {std::nullopt, state::StateInfo::Type::Delegation}, page);
    for (const state::StateInfo& each : page.rows())
      if (!exports->serves(each.file)) files.recall(each.stateid);
  }
}

// Of a file whose export is gone no conflict makes another one.
void SharedState::recall_again(const state::Stateid& delegation) {
  files.recall_again(delegation);
  unrecalled_ = true;
}

void SharedState::watch_leases() {
  if (LeaseTimer* const timer = lease_timer.load(std::memory_order_acquire)) timer->look();
}

bool SharedState::keeps_programs_out(const state::Life& life) const {
  if (!life.seen_by_programs.load()) return false;
  state::HeldCounts held;
  files.count_held({&life.clientid, 1}, {&held, 1});
  return held.locks != 0;
}

// Where nobody watches the programs, they would be kept out for a day.
void SharedState::make_way_for_programs(const state::LifePtr& life) {
  LapsedLocks* const locks = lapsed_locks.load(std::memory_order_acquire);
  if (locks == nullptr || !locks->add(life)) end_lapsed(life->clientid, EndedFor::Conflict);
}

void SharedState::free_state(const state::Life& ended) {
  copy_notices.release(ended);
  files.release(ended);
  owners.release(ended.clientid);
}

void SharedState::release(const state::LifePtr& ended) {
  if (ended == nullptr) return;
  free_state(*ended);
  if (options.recovery != nullptr) remove_record(ended->clientid);
}

// Where it cannot be removed the timer tries again, though no client is left.
void SharedState::remove_record(state::ClientId ended) {
  options.recovery->remove_later(ended);
  watch_leases();
}

namespace {

std::string_view words_for(EndedFor why) {
  switch (why) {
    case EndedFor::Conflict:
      return "somebody else wants what it held";
    case EndedFor::NewClient:
      return "a new client needs its place";
    case EndedFor::Room:
      return "others need the room that it took";
    case EndedFor::TimeOver:
      break;
  }
  return "nobody waits for it any longer";
}

// What has ended has ended, though no memory is left to say so.
void note_end(state::ClientId client, std::string_view address, EndedFor why) noexcept {
  try {
    trace(Reason::Nfs4CourtesyEnded, address,
          "client " + std::to_string(client) + ": " + std::string(words_for(why)));
  } catch (const std::bad_alloc&) {
    trace(Reason::Nfs4CourtesyEnded, address);
  }
}

}  // namespace

// False: it came back meanwhile, or is gone. `claims`: whose claims end with it; may be null.
bool SharedState::end_now(state::ClientId client, EndedFor why,
                          const recovery::ClientOwner* claims) {
  const auto identity = clients.identity(client);
  const state::LifePtr ended = clients.end(client, true);
  if (ended == nullptr) return false;
  if (claims != nullptr) options.recovery->completed(*claims);
  free_state(*ended);
  note_end(client, identity ? std::string_view(identity->address) : std::string_view(), why);
  return true;
}

// What fails here is tried again by expire(), for the client is wanted, or its time is over.
bool SharedState::end_lapsed(state::ClientId client, EndedFor why) {
  const state::LifePtr life = clients.life(client);
  if (life == nullptr) return true;
  if (!life->lapsed()) return life->ended();
  if (why != EndedFor::TimeOver) life->wanted.store(why);
  if (options.recovery == nullptr) return end_now(client, why);
  if (life->ending.exchange(true)) return false;
  // Refused work goes, and `ending` with it.
  static_cast<void>(options.recovery->offload(
      [this, why, ending = Ending(life)] { end_recorded(ending.life, why); }));
  return life->ended();
}

// While the record of one is being removed no other one is ended: that one's room may do.
bool SharedState::make_room(state::Limit reached, state::Shortage of, const state::Life& asks) {
  const state::ClientId lapsed = clients.find_lapsed(reached, of, asks);
  return lapsed != 0 && end_lapsed(lapsed, EndedFor::Room);
}

// Blocks. What the client holds goes to another only when the client could not claim it again after
// a restart, nor, in a grace period, by what an earlier start wrote, or another server: another
// client of its owner claims nothing from before it has ended. It may come back meanwhile, before
// or after its record has gone: it gets it again, and claims on.
void SharedState::end_recorded(const state::LifePtr& life, EndedFor why) {
  using Kind = recovery::Change::Kind;
  const state::ClientId id = life->clientid;
  auto owner = owner_of(id);
  if (!owner || !life->lapsed()) return;
  const bool claims = options.grace->active();
  std::optional<recovery::Recovery::Withheld> withheld;
  if (claims) withheld.emplace(*options.recovery, *owner, id);
  if (!options.recovery->write({claims ? Kind::Forget : Kind::Remove, id, *owner})) return;
  // Should the rest fail, and the client come back, it is recorded when it asks for something.
  life->recorded = false;
  if (!end_now(id, why, claims ? &*owner : nullptr)) record_again(life, *std::move(owner));
}

void SharedState::record_again(const state::LifePtr& life, recovery::ClientOwner owner) {
  if (life->forfeits() || life->ended()) return;
  const recovery::Change added{recovery::Change::Kind::Add, life->clientid, std::move(owner), life};
  static_cast<void>(options.recovery->write(added));
  // A thread that ended the client meanwhile saw no record to remove.
  if (life->ended()) remove_record(life->clientid);
}

namespace {

struct Revoking {
  explicit Revoking(state::Life& of) : life(of) { life.revoking.fetch_add(1); }
  Revoking(const Revoking&) = delete;
  ~Revoking() { life.revoking.fetch_sub(1); }
  state::Life& life;
};

}  // namespace

// A client that has lost something already has no record, and gets none.
bool SharedState::revoke(state::Life& life, UniqueFunction<void()> take) const {
  using recovery::Change;
  const Revoking revoking(life);
  const auto owner = options.recovery == nullptr ? std::nullopt : owner_of(life.clientid);
  if (owner && !life.has_lost()) {
    if (!options.recovery->write({Change::Kind::Forget, life.clientid, *owner})) return false;
    life.recorded = false;
    life.lost = true;
    // Nor in this grace period.
    if (life.may_reclaim.exchange(false)) options.recovery->completed(*owner);
  }
  take();
  return true;
}

namespace {

// An administrator waits for this; told at the end, even of work that the worker gave up.
struct EndingByAdmin {
  EndingByAdmin(Ending of, UniqueFunction<void(EndedByAdmin)> told)
      : ending(std::move(of)), done(std::move(told)) {}
  ~EndingByAdmin() {
    { const Ending over = std::move(ending); }
    done(result);
  }
  Ending ending;
  UniqueFunction<void(EndedByAdmin)> done;
  EndedByAdmin result = EndedByAdmin::Busy;
};

}  // namespace

void SharedState::end_by_admin(state::ClientId client, TimePoint now,
                               UniqueFunction<void(EndedByAdmin)> done) {
  const state::LifePtr life = clients.life(client);
  if (life == nullptr) return done(EndedByAdmin::Unknown);
  if (options.recovery == nullptr) {
    release(clients.end(client, false));
    return done(EndedByAdmin::Yes);
  }
  if (life->ending.exchange(true)) return done(EndedByAdmin::Busy);
  const auto by_admin = std::make_shared<EndingByAdmin>(Ending(life), std::move(done));
  // As in end_lapsed().
  static_cast<void>(options.recovery->offload([this, by_admin, now] {
    by_admin->result = end_recorded_by_admin(*by_admin->ending.life, now);
  }));
}

// Blocks. As end_recorded(), but the client has no say: from before its record goes until it has
// ended it gets none by a request in progress, else it could claim after a crash what is free for
// others from then on. What it may still claim of earlier starts, or of another server, goes before
// that, too, whether it has asked for it or not.
EndedByAdmin SharedState::end_recorded_by_admin(state::Life& life, TimePoint now) {
  const Revoking unrecorded(life);
  const auto owner = owner_of(life.clientid);
  std::optional<recovery::Recovery::Withheld> withheld;
  bool last = false;
  if (owner) {
    withheld.emplace(*options.recovery, *owner, life.clientid);
    if (!options.recovery->write({recovery::Change::Kind::Forget, life.clientid, *owner}))
      return EndedByAdmin::Failed;
    last = options.recovery->completed(*owner);
  }
  if (const state::LifePtr ended = clients.end(life.clientid, false)) free_state(*ended);
  if (last) options.grace->nobody_left(now);
  return EndedByAdmin::Yes;
}

std::optional<recovery::ClientOwner> SharedState::owner_of(state::ClientId client) const {
  auto identity = clients.identity(client);
  if (!identity) return std::nullopt;
  return recovery::ClientOwner{std::move(identity->co_ownerid), std::move(identity->principal)};
}

Task<v4::nfsstat4> SharedState::record(state::Life& life, Loop& loop, const void* asker) {
  if (options.recovery == nullptr || life.recorded.load() || life.forfeits()) co_return v4::NFS4_OK;
  state::LifePtr kept = clients.life(life.clientid);
  auto owner = owner_of(life.clientid);
  if (kept == nullptr || !owner) co_return v4::NFS4ERR_EXPIRED;
  const recovery::Written written = co_await options.recovery->add(life.clientid, *std::move(owner),
                                                                   loop, asker, std::move(kept));
  // A thread that ended the client meanwhile saw no record to remove. Where the write is refused,
  // another thread may have written the record.
  if (life.ended()) remove_record(life.clientid);
  if (written == recovery::Written::Failed) co_return v4::NFS4ERR_SERVERFAULT;
  // Where what it was to lose has stayed after all it is to be recorded, as if it had been refused.
  if (written == recovery::Written::Forfeited && life.forfeits()) co_return v4::NFS4_OK;
  co_return written == recovery::Written::Yes ? v4::NFS4_OK : v4::NFS4ERR_DELAY;
}

void SharedState::not_cut_off(state::Life& life) {
  if (!life.cut_off.load()) return;
  life.may_reclaim = false;
  life.cut_off = false;
}

void SharedState::completed(const state::Life& life, TimePoint now) {
  if (options.recovery != nullptr && options.grace->active())
    completed(owner_of(life.clientid), now);
}

void SharedState::completed(const std::optional<recovery::ClientOwner>& owner, TimePoint now) {
  if (owner && options.recovery->completed(*owner)) options.grace->nobody_left(now);
}

// A record that cannot be removed is logged, and removed later; its client has nothing that it
// could claim. What must not be forgotten is done before anything needs memory.
Task<state::Status> SharedState::destroy(state::ClientId client, Loop& loop, const void* asker) {
  const auto owner = owner_of(client);
  state::LifePtr ended;
  const state::Status status = clients.destroy_clientid(client, ended);
  if (ended == nullptr) co_return status;
  free_state(*ended);
  if (options.recovery == nullptr) co_return status;
  const bool recorded = options.recovery->note_ended(client);
  if (ended->may_reclaim.load()) completed(owner, loop.now());
  watch_leases();
  if (!recorded) co_return status;
  try {
    co_await options.recovery->remove_ended(loop, asker);
  } catch (const std::bad_alloc&) {
    // The timer sees to it.
  }
  co_return status;
}

void SharedState::remove_idle_records() const try {
  if (options.recovery == nullptr) return;
  options.recovery->remove_unneeded([this](state::ClientId client) {
    const state::LifePtr life = clients.life(client);
    return life != nullptr && life->states.load() != 0;
  });
} catch (const std::bad_alloc&) {
  // They stay, as after a crash.
}

}  // namespace stag::nfs::nfs4
