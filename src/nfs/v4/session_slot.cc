#include "nfs/v4/session_slot.h"

#include "base/completion.h"
#include "nfs/v4/compound/state_status.h"

namespace stag::nfs::nfs4 {

struct SessionSlot::KeptResults final : state::Reply {
  explicit KeptResults(xdr::Stream kept) : stream(std::move(kept)) {}
  const xdr::Stream stream;
};

namespace {

// How long a retry waits for the first transmission to end.
constexpr Duration kRetryWaits = std::chrono::seconds(10);

state::SequenceArgs to_sequence_args(const OperationList& list, const v4::SEQUENCE4args& args,
                                     const std::string& principal) {
  SipHash hash(process_sip_key());
  hash.add(bytes_of(principal));
  hash.add(list.sample());
  state::SequenceArgs to;
  to.sessionid = args.sa_sessionid;
  to.sequenceid = args.sa_sequenceid;
  to.slotid = args.sa_slotid;
  to.highest_slotid = args.sa_highest_slotid;
  to.cachethis = args.sa_cachethis;
  to.operations = list.sent();
  to.request_size = list.size();
  to.fingerprint = hash.finish();
  return to;
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
  return result;
}

v4::SEQUENCE4res refused(v4::nfsstat4 status) {
  v4::SEQUENCE4res result;
  result.sr_status = status;
  return result;
}

}  // namespace

// Which of the two comes second finds nobody waiting.
Task<bool> SessionSlot::wait(const state::SlotRef& slot) {
  Loop& loop = compound_.admission().call().loop();
  const auto ended = std::make_shared<Completion<bool>>();
  const auto complete = [ended](bool in_time) {
    if (!ended->completed()) ended->complete(in_time);
  };
  const bool waits = compound_.shared().clients.wait(
      slot, [&loop, complete] { loop.post([complete] { complete(true); }); });
  if (!waits) co_return true;
  const Timer limit = loop.after(kRetryWaits, [complete] { complete(false); });
  co_return co_await *ended;
}

Task<SessionSlot::Begun> SessionSlot::begin(const OperationList& list) {
  const auto& args = *static_cast<const v4::SEQUENCE4args*>(list.entries()[0].arguments);
  compound_.shared().expire(compound_.now());
  const state::SequenceArgs asked = to_sequence_args(list, args, compound_.principal());
  state::Sequenced sequenced = compound_.shared().clients.sequence(asked, compound_.now());
  while (sequenced.kind == state::Sequenced::Kind::Wait) {
    const bool ended = co_await wait(sequenced.slot);
    if (!ended) co_return Begun{refused(v4::NFS4ERR_DELAY)};
    sequenced = compound_.shared().clients.sequence(asked, compound_.now());
  }
  switch (sequenced.kind) {
    case state::Sequenced::Kind::Run:
      break;
    case state::Sequenced::Kind::Replay:
      if (sequenced.reply == nullptr) co_return Begun{to_result(args, sequenced), {}, true};
      co_return Begun{{}, static_cast<const KeptResults&>(*sequenced.reply).stream};
    default:
      co_return Begun{refused(to_nfsstat4(sequenced.status))};
  }
  compound_.occupied() =
      OccupiedSlot{sequenced.slot, sequenced.life, args.sa_cachethis, sequenced.max_response_size,
                   sequenced.max_response_size_cached};
  co_return Begun{to_result(args, sequenced)};
}

const xdr::Stream& SessionSlot::finish(xdr::Stream results) {
  kept_ = std::make_shared<const KeptResults>(std::move(results));
  give_back(kept_);
  return kept_->stream;
}

void SessionSlot::give_back(state::ReplyPtr results) {
  if (!compound_.occupied()) return;
  const OccupiedSlot slot = *std::exchange(compound_.occupied(), std::nullopt);
  compound_.shared().clients.finished(slot.slot, slot.life, std::move(results), compound_.now());
}

}  // namespace stag::nfs::nfs4
