// SEQUENCE: the one operation that is in nearly every COMPOUND. Nothing here allocates unless a
// retry has to wait.
#include <algorithm>

#include "nfs/state/client_table.h"
#include "nfs/state/clients.h"

namespace stag::nfs::state {
namespace {

// sr_status_flags (RFC 8881 18.46.2)
constexpr std::uint32_t kCbPathDown = 0x1;
constexpr std::uint32_t kExpiredSomeStateRevoked = 0x10;
constexpr std::uint32_t kAdminStateRevoked = 0x20;
constexpr std::uint32_t kRecallableStateRevoked = 0x40;
constexpr std::uint32_t kCbPathDownSession = 0x200;
constexpr std::uint32_t kBackchannelFault = 0x400;

Status validate(const Session* session, const SequenceArgs& args) {
  if (session == nullptr) return Status::BadSession;
  // RFC 8881 2.10.8.3: nobody else's connection comes to a session that is protected.
  if (session->client().life->protection.machine_credential && !session->serves(args.connection))
    return Status::ConnNotBoundToSession;
  if (args.operations > session->fore().max_operations) return Status::TooManyOps;
  if (args.request_size > session->fore().max_request_size) return Status::ReqTooBig;
  if (args.slotid >= session->fore().max_requests) return Status::BadSlot;
  return Status::Ok;
}

void set_limits(Sequenced& result, const Session& session, std::uint32_t flags) {
  result.highest_slotid = result.target_highest_slotid = session.fore().max_requests - 1;
  result.max_response_size = session.fore().max_response_size;
  result.max_response_size_cached = session.fore().max_response_size_cached;
  result.status_flags = flags;
}

}  // namespace

inline std::uint32_t Clients::Impl::status_flags(const Session& session, const ClientShard& shard) {
  std::uint32_t flags = 0;
  const Life& life = *session.client().life;
  if (life.expired_revoked.load(std::memory_order_relaxed) != 0) flags |= kExpiredSomeStateRevoked;
  if (life.admin_revoked.load(std::memory_order_relaxed) != 0) flags |= kAdminStateRevoked;
  if (life.recallable_revoked.load(std::memory_order_relaxed) != 0)
    flags |= kRecallableStateRevoked;
  if (session.backchannel_fault) flags |= kBackchannelFault;
  const bool lost = session.lost_back_channel();
  if (lost) flags |= kCbPathDownSession;
  // A client that never had a back channel misses it only where it holds what can be recalled.
  if (!lost && life.delegations.load(std::memory_order_relaxed) == 0) return flags;
  const auto& places = session.client().sessions;
  const bool another = std::any_of(places.begin(), places.end(), [&](std::uint32_t place) {
    return shard.session_at(place).has_back_channel();
  });
  return another ? flags : flags | kCbPathDown;
}

Sequenced Clients::sequence(const SequenceArgs& args, TimePoint now) {
  Sequenced result;
  ReplyPtr forgotten;  // freed when the lock is
  ClientShard& shard = impl_->shard_of(args.sessionid);
  const BriefLock lock(shard.mutex);
  Session* const session = shard.find(args.sessionid);
  result.status = validate(session, args);
  if (result.status != Status::Ok) return result;
  Slot& slot = session->slots()[args.slotid];
  result.slot = {args.sessionid, args.slotid, args.sequenceid};
  switch (slot.judge(args.sequenceid, args.fingerprint)) {
    case Slot::Judgement::New:
      result.kind = Sequenced::Kind::Run;
      forgotten = slot.start(args.fingerprint);
      session->client().life->running.fetch_add(1, std::memory_order_acq_rel);
      break;
    case Slot::Judgement::Done:
      result.kind = Sequenced::Kind::Replay;
      result.reply = slot.reply();
      break;
    case Slot::Judgement::Running:
      // Its first transmission may keep the lease no longer.
      session->client().renew(now);
      if (slot.waiters().size() < impl_->options.limits.retries_waiting)
        result.kind = Sequenced::Kind::Wait;
      else
        result.status = Status::Delay;
      return result;
    case Slot::Judgement::Misordered:
      result.status = Status::SeqMisordered;
      return result;
    case Slot::Judgement::FalseRetry:
      result.status = Status::SeqFalseRetry;
      return result;
  }
  result.life = session->client().life;
  session->on_sequence(args.connection);
  session->client().renew(now);
  set_limits(result, *session, impl_->status_flags(*session, shard));
  return result;
}

bool Clients::wait(const SlotRef& slot, UniqueFunction<void()> done) {
  ClientShard& shard = impl_->shard_of(slot.sessionid);
  const BriefLock lock(shard.mutex);
  Session* const session = shard.find(slot.sessionid);
  if (session == nullptr || slot.slotid >= session->slots().size()) return false;
  Slot& here = session->slots()[slot.slotid];
  if (!here.runs(slot.sequenceid)) return false;
  if (here.waiters().size() >= impl_->options.limits.retries_waiting) return false;
  here.waiters().push_back(std::move(done));
  return true;
}

// RFC 8881 8.3: the lease counts from the end of the request, whatever became of its session.
inline void Clients::Impl::stop_keeping_lease(const ClientShard& shard, const Session* session,
                                              Life& life, TimePoint now) {
  if (!life.ended())
    (session != nullptr ? session->client() : *shard.find(life.clientid)).renew(now);
  life.running.fetch_sub(1, std::memory_order_acq_rel);
}

void Clients::keeps_no_lease(const SlotRef& slot, const LifePtr& life, TimePoint now) {
  const ClientShard& shard = impl_->shard_of(slot.sessionid);
  const BriefLock lock(shard.mutex);
  Impl::stop_keeping_lease(shard, shard.find(slot.sessionid), *life, now);
}

void Clients::finished(const SlotRef& slot, const LifePtr& life, ReplyPtr reply, TimePoint now,
                       bool keeps_lease) {
  Slot::Waiters waiters;
  ClientShard& shard = impl_->shard_of(slot.sessionid);
  {
    const BriefLock lock(shard.mutex);
    Session* const session = shard.find(slot.sessionid);
    if (session != nullptr && session->slots()[slot.slotid].runs(slot.sequenceid))
      waiters = session->slots()[slot.slotid].finish(std::move(reply));
    if (keeps_lease) Impl::stop_keeping_lease(shard, session, *life, now);
  }
  if (!waiters.empty()) tell(waiters);
}

}  // namespace stag::nfs::state
