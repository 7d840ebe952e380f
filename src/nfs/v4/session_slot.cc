#include "nfs/v4/session_slot.h"

#include <algorithm>
#include <functional>

#include "base/first_answer.h"
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/connection.h"
#include "nfs/v4/ops/direct_codecs.h"

namespace stag::nfs::nfs4 {

struct SessionSlot::KeptResults final : state::Reply {
  explicit KeptResults(xdr::Stream kept) : stream(std::move(kept)) {}
  const xdr::Stream stream;
};

namespace {

// How long a retry waits for the first transmission to end.
constexpr Duration kRetryWaits = std::chrono::seconds(10);

const v4::SEQUENCE4args& args_of(const OperationList& list) {
  return *static_cast<const SequenceArguments*>(list.entries()[0].arguments);
}

inline state::SequenceArgs to_sequence_args(const OperationList& list,
                                            const v4::SEQUENCE4args& args,
                                            const Compound& compound) {
  state::SequenceArgs to;
  to.sessionid = args.sa_sessionid;
  to.connection = connection_of(compound);
  to.sequenceid = args.sa_sequenceid;
  to.slotid = args.sa_slotid;
  to.highest_slotid = args.sa_highest_slotid;
  to.cachethis = args.sa_cachethis;
  to.operations = list.sent();
  to.request_size = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(compound.admission().call().call_size(), ~std::uint32_t{0}));
  // A client that makes two samples collide misleads itself; it cannot pass for another. What is
  // not kept is told to a retry whatever it asks for.
  const std::size_t request =
      args.sa_cachethis ? std::hash<std::string_view>()(text_of(list.sample())) : 0;
  to.fingerprint = {compound.principal_number(), request};
  return to;
}

// RFC 8881 18.46.3: from a restart of the server, or of the one whose clients were adopted, until
// RECLAIM_COMPLETE. Set for nobody else: Linux's client, which looks at it where no recovery is in
// progress, would take it for another restart.
bool must_reclaim(const state::Life& life) {
  return life.may_reclaim.load() && !life.reclaim_complete.load();
}

v4::SEQUENCE4res to_result(const v4::SEQUENCE4args& args, const state::Sequenced& sequenced) {
  v4::SEQUENCE4res result;
  v4::SEQUENCE4resok& ok = result.sr_resok4();
  ok.sr_sessionid = args.sa_sessionid;
  ok.sr_sequenceid = args.sa_sequenceid;
  ok.sr_slotid = args.sa_slotid;
  ok.sr_highest_slotid = sequenced.highest_slotid;
  ok.sr_target_highest_slotid = sequenced.target_highest_slotid;
  ok.sr_status_flags = sequenced.status_flags;
  if (must_reclaim(*sequenced.life)) ok.sr_status_flags |= v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
  return result;
}

v4::SEQUENCE4res refused(v4::nfsstat4 status) {
  v4::SEQUENCE4res result;
  result.sr_status = status;
  return result;
}

}  // namespace

Task<bool> SessionSlot::wait(const state::SlotRef& slot) {
  FirstAnswer<bool> ended(compound_.admission().call().loop());
  const bool waits =
      compound_.shared().clients.wait(slot, [tell = ended.from_anywhere()] { tell(true); });
  if (!waits) co_return true;
  co_return co_await ended.within(kRetryWaits, false);
}

std::optional<SessionSlot::Begun> SessionSlot::judge(const v4::SEQUENCE4args& args,
                                                     state::Sequenced&& sequenced) {
  switch (sequenced.kind) {
    case state::Sequenced::Kind::Wait:
      return std::nullopt;
    case state::Sequenced::Kind::Run:
      break;
    case state::Sequenced::Kind::Replay:
      if (sequenced.reply == nullptr) return Begun{to_result(args, sequenced), nullptr, true};
      kept_ = std::static_pointer_cast<const KeptResults>(std::move(sequenced.reply));
      return Begun{{}, &kept_->stream};
    default:
      if (sequenced.status == state::Status::TooManyOps)
        note_limit(compound_, Reason::Nfs4OperationsTooMany, 0, {});
      return Begun{refused(to_nfsstat4(sequenced.status))};
  }
  Begun begun{to_result(args, sequenced)};
  OccupiedSlot& occupied = compound_.occupied().emplace();
  occupied.slot = sequenced.slot;
  occupied.life = std::move(sequenced.life);
  occupied.cache_this = args.sa_cachethis;
  occupied.response_max = sequenced.max_response_size;
  occupied.cached_max = sequenced.max_response_size_cached;
  return begun;
}

std::optional<SessionSlot::Begun> SessionSlot::begin(const OperationList& list) {
  const v4::SEQUENCE4args& args = args_of(list);
  const TimePoint now = compound_.now();
  compound_.shared().expire(now);
  const state::SequenceArgs asked = to_sequence_args(list, args, compound_);
  return judge(args, compound_.shared().clients.sequence(asked, now));
}

Task<SessionSlot::Begun> SessionSlot::begin_after_the_first(const OperationList& list) {
  const v4::SEQUENCE4args& args = args_of(list);
  const state::SequenceArgs asked = to_sequence_args(list, args, compound_);
  for (;;) {
    state::Sequenced sequenced = compound_.shared().clients.sequence(asked, compound_.now());
    const state::SlotRef slot = sequenced.slot;
    if (auto begun = judge(args, std::move(sequenced))) co_return *std::move(begun);
    const bool ended = co_await wait(slot);
    if (!ended) co_return Begun{refused(v4::NFS4ERR_DELAY)};
  }
}

// They count for the session with their own bytes, so they keep no others.
const xdr::Stream& SessionSlot::finish(xdr::Stream results) {
  results.unshare();
  kept_ = std::make_shared<const KeptResults>(std::move(results));
  give_back(kept_);
  return kept_->stream;
}

// What is being changed may still come about, and the lease outlasts it (RFC 8881 8.3). What is
// read may hang in its store for ever, and keep from others what a dead client has elsewhere.
void SessionSlot::lost_connection(const OperationList::Entry& running) {
  if (!compound_.occupied() || running.may_change()) return;
  OccupiedSlot& occupied = *compound_.occupied();
  occupied.keeps_lease = false;
  compound_.shared().clients.keeps_no_lease(occupied.slot, occupied.life, compound_.now());
}

void SessionSlot::give_back(state::ReplyPtr results) {
  if (!compound_.occupied()) return;
  const state::SlotRef slot = compound_.occupied()->slot;
  const state::LifePtr life = std::move(compound_.occupied()->life);
  const bool keeps_lease = compound_.occupied()->keeps_lease;
  compound_.occupied().reset();
  compound_.shared().clients.finished(slot, life, std::move(results), compound_.now(), keeps_lease);
}

}  // namespace stag::nfs::nfs4
