#include "nfs/session/session.h"

#include <algorithm>
#include <cstring>

#include "nfs/session/back_channel.h"

namespace stag::nfs::session {
namespace {

// RFC 8881 18.36: the callback program is the client's choice, from the transient range.
constexpr std::uint32_t kCallbackProgram = 0x40000000;
constexpr std::uint32_t kCallbackMax = 1024;  // bytes of a callback, and of its results
constexpr std::uint32_t kCallbackOperations = 2;

v4::channel_attrs4 channel(std::uint32_t bytes, std::uint32_t kept, std::uint32_t operations,
                           std::uint32_t calls) {
  v4::channel_attrs4 attributes;
  attributes.ca_maxrequestsize = attributes.ca_maxresponsesize = bytes;
  attributes.ca_maxresponsesize_cached = kept;
  attributes.ca_maxoperations = operations;
  attributes.ca_maxrequests = calls;
  return attributes;
}

v4::bitmap4 bitmap(std::initializer_list<v4::nfs_opnum4> operations) {
  v4::bitmap4 set(2);
  for (const v4::nfs_opnum4 each : operations) set[each / 32] |= 1u << each % 32;
  return set;
}

// RFC 8881 2.10.8.3: what nobody else shall do with this client's sessions.
v4::bitmap4 enforced() {
  return bitmap({v4::OP_BIND_CONN_TO_SESSION, v4::OP_EXCHANGE_ID, v4::OP_CREATE_SESSION,
                 v4::OP_DESTROY_SESSION, v4::OP_DESTROY_CLIENTID});
}

// What gives state back, whatever security flavor its file wants.
v4::bitmap4 allowed() {
  return bitmap({v4::OP_CLOSE, v4::OP_OPEN_DOWNGRADE, v4::OP_LOCKU, v4::OP_DELEGRETURN,
                 v4::OP_TEST_STATEID, v4::OP_FREE_STATEID});
}

bool is_within(const v4::bitmap4& some, const v4::bitmap4& all) {
  for (std::size_t i = 0; i < some.size(); ++i)
    if ((some[i] & ~(i < all.size() ? all[i] : 0)) != 0) return false;
  return true;
}

// RFC 8881 18.35.3: a server may enforce more than it was asked for, which this client would not
// keep to: whoever calls renews the lease, opens and reads.
bool grants_protection(const v4::state_protect4_r& protection) {
  return protection.spr_how == v4::SP4_MACH_CRED &&
         is_within(protection.spr_mach_ops().spo_must_enforce, enforced());
}

// Of SEQUENCE: the server has executed a request with this number, and keeps what came of it to
// itself.
bool says_executed(v4::nfsstat4 status) {
  return status == v4::NFS4ERR_RETRY_UNCACHED_REP || status == v4::NFS4ERR_SEQ_FALSE_RETRY;
}

// Some servers take a retry of what they are still at for a request that is out of order, in place
// of NFS4ERR_DELAY. In another session it would run twice.
bool says_busy(const Slots::Turn& turn, v4::nfsstat4 status) {
  return status == v4::NFS4ERR_DELAY || (status == v4::NFS4ERR_SEQ_MISORDERED && turn.repeated);
}

}  // namespace

v4::EXCHANGE_ID4args Session::exchange_id() const {
  v4::EXCHANGE_ID4args args;
  args.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(identity_.owner));
  args.eia_clientowner.co_verifier = identity_.verifier;
  args.eia_flags = v4::EXCHGID4_FLAG_USE_NON_PNFS;
  if (identity_.machine_credential) {
    args.eia_state_protect.spa_how = v4::SP4_MACH_CRED;
    args.eia_state_protect.spa_mach_ops() = {enforced(), allowed()};
  }
  return args;
}

v4::CREATE_SESSION4args Session::create_session() const {
  v4::CREATE_SESSION4args args;
  args.csa_clientid = clientid_;
  args.csa_sequence = create_sequence_;
  args.csa_fore_chan_attrs =
      channel(identity_.message_max, kCachedMax, kOperations, identity_.slots);
  // RFC 8267 6.5.2: no callback longer than any inline threshold.
  args.csa_back_chan_attrs =
      channel(kCallbackMax, kCallbackMax, kCallbackOperations, BackChannel::kSlots);
  if (identity_.called_back) args.csa_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
  args.csa_cb_program = kCallbackProgram;
  args.csa_sec_parms.resize(1);
  return args;
}

// Back to a step. Calls that fail together go back together.
Fate Session::go_back(Step step) {
  if (step_ <= step) return Fate::Again;
  step_ = step;
  return ++recoveries_ > kMostRecoveries ? Fate::Unsteady : Fate::Again;
}

// The same to a server that keeps the session.
Fate Session::leave() {
  if (has_session()) {
    if (left_.size() == kMostLeft) left_.erase(left_.begin());
    left_.push_back({sessionid_, slots_.table()});
  }
  return go_back(Step::CreateSession);
}

std::optional<v4::sessionid4> Session::left_behind() const {
  return left_.empty() ? std::nullopt : std::optional(left_.front().session);
}

bool Session::has_calls(const Left& left) const {
  return (left.table == slots_.table() ? slots_.in_use() : left.calls) != 0;
}

std::optional<v4::sessionid4> Session::left_idle() const {
  for (const Left& left : left_)
    if (!has_calls(left)) return left.session;
  return has_session() ? std::nullopt : left_behind();
}

void Session::on_kept(const v4::sessionid4& session) {
  const auto at =
      std::ranges::find_if(left_, [&](const Left& left) { return left.session == session; });
  if (at != left_.end()) std::rotate(at, at + 1, left_.end());
}

const Session::Left* Session::left_of(const Slots::Turn& turn) const {
  if (turn.table == slots_.table()) return nullptr;
  const auto at =
      std::ranges::find_if(left_, [&](const Left& left) { return left.table == turn.table; });
  return at == left_.end() ? nullptr : &*at;
}

void Session::end(const Slots::Turn& turn, Slots::Number number) {
  if (!slots_.current(turn)) return end_left(turn);
  slots_.give_back(turn, number);
}

void Session::end_left(const Slots::Turn& turn) {
  for (Left& left : left_)
    if (left.table == turn.table) left.calls &= ~(Slots::Set{1} << turn.slot);
}

Fate Session::on_exchange_id(const v4::EXCHANGE_ID4res& results) {
  if (results.eir_status == v4::NFS4ERR_DELAY) return Fate::Later;
  const bool done = results.eir_status == v4::NFS4_OK;
  const bool none = done && results.eir_resok4().eir_state_protect.spr_how == v4::SP4_NONE;
  protected_ = done && grants_protection(results.eir_resok4().eir_state_protect);
  if (identity_.machine_credential && !protected_) {
    identity_.machine_credential = false;
    if (!none) return Fate::Again;
  }
  if (!done) return Fate::Refused;
  const v4::EXCHANGE_ID4resok& client = results.eir_resok4();
  const bool known = (client.eir_flags & v4::EXCHGID4_FLAG_CONFIRMED_R) != 0;
  const bool same = known && client.eir_clientid == clientid_ && incarnation_ > 0;
  // 18.35.3: whoever has made a session before goes on counting.
  if (!same) {
    left_.clear();
    create_sequence_ = client.eir_sequenceid;
    complete_ = false;
    ++incarnation_;
  }
  clientid_ = client.eir_clientid;
  step_ = Step::CreateSession;
  return Fate::Go;
}

Fate Session::on_create_session(const v4::CREATE_SESSION4res& results) {
  switch (results.csr_status) {
    case v4::NFS4_OK:
      break;
    case v4::NFS4ERR_DELAY:
      return Fate::Later;
    case v4::NFS4ERR_SEQ_MISORDERED:
      // The count of sessions is lost. Another verifier is another incarnation, which counts anew.
      identity_.verifier.back() ^= std::byte{0xff};
      return go_back(Step::ExchangeId);
    case v4::NFS4ERR_STALE_CLIENTID:
      return go_back(Step::ExchangeId);
    default:
      // 18.36.4: the number is taken before anything is refused.
      ++create_sequence_;
      // There may be room when those that were left are destroyed.
      return results.csr_status == v4::NFS4ERR_NOSPC && !left_.empty() ? Fate::Later
                                                                       : Fate::Refused;
  }
  const v4::CREATE_SESSION4resok& made = results.csr_resok4();
  ++create_sequence_;
  fore_ = made.csr_fore_chan_attrs;
  if (fore_.ca_maxrequests == 0 || fore_.ca_maxoperations < kOperations ||
      std::min(fore_.ca_maxrequestsize, fore_.ca_maxresponsesize) < kLeastMessage)
    return Fate::Broken;
  sessionid_ = made.csr_sessionid;
  on_destroyed(sessionid_);
  for (Left& left : left_)
    if (left.table == slots_.table()) left.calls = slots_.in_use();
  slots_.reset(std::min(fore_.ca_maxrequests, identity_.slots));
  back_bound_ = (made.csr_flags & v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN) != 0;
  const bool called = (identity_.called_back && back_bound_) || identity_.called_back_elsewhere;
  back_slots_ = called ? made.csr_back_chan_attrs.ca_maxrequests : 0;
  status_flags_ = 0;
  step_ = complete_ ? Step::Ready : Step::ReclaimComplete;
  return Fate::Go;
}

Fate Session::on_reclaim_complete(v4::nfsstat4 status) {
  if (status == v4::NFS4ERR_DELAY || status == v4::NFS4ERR_GRACE) return Fate::Later;
  if (status != v4::NFS4_OK && status != v4::NFS4ERR_COMPLETE_ALREADY) return Fate::Refused;
  complete_ = true;
  if (step_ == Step::ReclaimComplete) step_ = Step::Ready;
  return Fate::Go;
}

v4::BIND_CONN_TO_SESSION4args Session::bind_connection() const {
  v4::BIND_CONN_TO_SESSION4args args;
  args.bctsa_sessid = sessionid_;
  args.bctsa_dir = v4::CDFC4_FORE_OR_BOTH;
  return args;
}

Fate Session::on_bind_connection(const v4::sessionid4& of,
                                 const v4::BIND_CONN_TO_SESSION4res& results) {
  if (results.bctsr_status == v4::NFS4ERR_DELAY) return Fate::Later;
  if (of != sessionid_ || !has_session()) return Fate::Again;
  if (results.bctsr_status == v4::NFS4ERR_BADSESSION) return go_back(Step::CreateSession);
  if (results.bctsr_status != v4::NFS4_OK) return leave();
  back_bound_ = (results.bctsr_resok4().bctsr_dir & v4::CDFS4_BACK) != 0;
  // Calls that find out together are bound together, and so counted once.
  return ++recoveries_ > kMostRecoveries ? Fate::Unsteady : Fate::Go;
}

v4::SEQUENCE4args Session::sequence(const Slots::Turn& turn, bool keep) const {
  const Left* const left = left_of(turn);
  const Slots::Set in_use = left == nullptr ? slots_.in_use() : left->calls;
  v4::SEQUENCE4args args;
  args.sa_sessionid = left == nullptr ? sessionid_ : left->session;
  args.sa_sequenceid = turn.sequence;
  args.sa_slotid = turn.slot;
  args.sa_highest_slotid = std::max(turn.slot, Slots::highest_of(in_use));
  args.sa_cachethis = keep;
  return args;
}

// g++ compares arrays of bytes one by one.
inline bool Session::belongs(const Slots::Turn& turn, const v4::SEQUENCE4resok& results) const {
  return std::memcmp(results.sr_sessionid.data(), sessionid_.data(), sessionid_.size()) == 0 &&
         results.sr_slotid == turn.slot && results.sr_sequenceid == turn.sequence;
}

// RFC 8881 18.46.3: a server says that it has restarted until RECLAIM_COMPLETE. What it began
// before that, or keeps for a retransmission, says so behind it as well, and of no other restart.
inline void Session::note(const Slots::Turn& turn, const v4::SEQUENCE4resok& results,
                          TimePoint sent) {
  recoveries_ = 0;
  renewed_ = std::max(renewed_, sent);
  status_flags_ = results.sr_status_flags;
  slots_.aim_at(results.sr_target_highest_slotid);
  const bool restarted = (results.sr_status_flags & v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED) != 0;
  if (restarted && complete_ && turn.reclaimed == incarnation_) {
    complete_ = false;
    ++incarnation_;
    step_ = std::min(step_, Step::ReclaimComplete);
  }
}

// SEQUENCE failed: nothing behind it was executed, by this transmission.
Fate Session::refused(const Slots::Turn& turn, v4::nfsstat4 status) {
  if (says_busy(turn, status)) return Fate::Busy;
  switch (status) {
    case v4::NFS4ERR_RETRY_UNCACHED_REP:
    case v4::NFS4ERR_SEQ_FALSE_RETRY:
      slots_.give_back(turn, Slots::Number::Used);
      return Fate::Gone;
    case v4::NFS4ERR_BADSLOT:
      slots_.give_back(turn, Slots::Number::Unused);
      if (!slots_.drop_from(turn.slot)) return leave();
      return ++recoveries_ > Slots::kMost ? Fate::Unsteady : Fate::Again;
    case v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION:
      return Fate::Unbound;
    case v4::NFS4ERR_BADSESSION:
      slots_.give_back(turn, Slots::Number::Doubtful);
      return go_back(Step::CreateSession);
    case v4::NFS4ERR_DEADSESSION:
    case v4::NFS4ERR_SEQ_MISORDERED:
    case v4::NFS4ERR_BAD_HIGH_SLOT:
      slots_.give_back(turn, Slots::Number::Doubtful);
      return leave();
    case v4::NFS4ERR_STALE_CLIENTID:
    case v4::NFS4ERR_EXPIRED:
      slots_.give_back(turn, Slots::Number::Doubtful);
      return go_back(Step::ExchangeId);
    default:
      slots_.give_back(turn, Slots::Number::Unused);
      return Fate::Refused;
  }
}

// It belongs to a session that is gone, or was left: another call has found that out.
Fate Session::on_sequence_left(const Slots::Turn& turn, v4::nfsstat4 status) {
  const bool is_left = left_of(turn) != nullptr;
  if (is_left && says_busy(turn, status)) return Fate::Busy;
  if (is_left && status == v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION) return Fate::Unbound;
  end_left(turn);
  if (status == v4::NFS4_OK) return Fate::Go;
  return says_executed(status) ? Fate::Gone : Fate::Again;
}

Fate Session::on_sequence(const Slots::Turn& turn, const v4::SEQUENCE4res& results,
                          TimePoint sent) {
  if (!slots_.current(turn)) return on_sequence_left(turn, results.sr_status);
  if (results.sr_status != v4::NFS4_OK) return refused(turn, results.sr_status);
  const v4::SEQUENCE4resok& resok = results.sr_resok4();
  if (!belongs(turn, resok)) {
    slots_.give_back(turn, Slots::Number::Doubtful);
    return Fate::Broken;
  }
  slots_.give_back(turn, Slots::Number::Used);
  note(turn, resok, sent);
  return Fate::Go;
}

Fate Session::on_settling(Slots::Turn& turn, const v4::SEQUENCE4res& results, TimePoint sent) {
  if (!slots_.current(turn)) {
    end_left(turn);
    return Fate::Again;
  }
  const bool replayed = says_executed(results.sr_status);
  if (results.sr_status == v4::NFS4_OK) {
    if (!belongs(turn, results.sr_resok4())) {
      slots_.give_back(turn, Slots::Number::Doubtful);
      return Fate::Broken;
    }
    note(turn, results.sr_resok4(), sent);
  } else if (says_busy(turn, results.sr_status)) {
    // The call that nobody waits for any more is still running.
    return Fate::Later;
  } else if (!replayed) {
    return refused(turn, results.sr_status);
  }
  slots_.settle(turn);
  turn.reclaimed = reclaimed();
  return Fate::Go;
}

bool Session::awaits(const v4::CB_SEQUENCE4args& callback) const {
  for (const v4::referring_call_list4& list : callback.csa_referring_call_lists) {
    if (list.rcl_sessionid != sessionid_) continue;
    for (const v4::referring_call4& call : list.rcl_referring_calls)
      if (slots_.awaits(call.rc_slotid, call.rc_sequenceid)) return true;
  }
  return false;
}

}  // namespace stag::nfs::session
