#include "nfs/v4/callback/callbacks.h"

#include "base/reason.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

namespace {

constexpr Duration kInterval = std::chrono::seconds(1);
// A client that does not know its delegation yet: the OPEN's Reply is on its way.
constexpr Duration kGrantTravels = std::chrono::seconds(2);
constexpr std::uint32_t kTriesInARow = 4;

std::shared_ptr<rpc::Channel> channel_of(const state::CallbackConnection& connection) {
  return std::static_pointer_cast<rpc::Channel>(connection.lock());
}

}  // namespace

Callbacks::Callbacks(SharedState& shared, Loop& home) : shared_(shared), home_(home) {
  shared_.files.on_recall([this](const state::Recall& wanted) { recall(wanted); });
  shared_.callbacks.store(this, std::memory_order_release);
}

Callbacks::~Callbacks() {
  shared_.files.on_recall({});
  shared_.callbacks.store(nullptr, std::memory_order_release);
}

void Callbacks::recall(const state::Recall& wanted) {
  home_.post([this, wanted] { begin(wanted); });
}

void Callbacks::begin(const state::Recall& wanted) {
  const auto [at, fresh] = recalled_.try_emplace(wanted.stateid.other);
  if (!fresh) return;
  at->second.recall = wanted;
  at->second.asked = home_.now();
  start(at->first, at->second);
  arm();
}

void Callbacks::probe(std::shared_ptr<BackChannel> back, UniqueFunction<void()> done) {
  home_.post([this, back = std::move(back), done = std::move(done)]() mutable {
    if (back->verdict() == BackChannel::Verdict::Works) return done();
    back->askers.push_back(std::move(done));
    start_probe(back);
  });
}

void Callbacks::start_probe(const std::shared_ptr<BackChannel>& back) {
  std::uint32_t about = 0;
  if (!back->begin_asking(about)) return;
  const auto answered = [back, about](bool works) {
    back->asked(about, works);
    for (auto& asker : std::exchange(back->askers, {})) asker();
  };
  for (const auto& bound : shared_.clients.back_channels(back->sessionid())) {
    auto channel = channel_of(bound.callbacks);
    if (channel == nullptr) continue;
    return call_back(
        std::move(channel),
        [&] {
          CallbackRequest request = back->request();
          request.compound = {};
          return request;
        }(),
        home_,
        [answered](CallbackOutcome outcome) {
          answered(outcome.kind == CallbackOutcome::Kind::Answered);
        });
  }
  answered(false);
}

// The session of the grant comes first: its referring call means something there.
void Callbacks::start(const DelegationKey& key, Recalled& recalled) {
  recalled.phase = Recalled::Phase::Asked;
  recalled.next_try = home_.now() + kInterval;
  const auto paths = shared_.clients.callback_paths(recalled.recall.clientid);
  const state::SessionId& first = recalled.recall.granted_by.sessionid;
  for (const bool granting : {true, false})
    for (const auto& [sessionid, path] : paths) {
      if ((sessionid == first) != granting) continue;
      if (start_on(key, recalled, std::static_pointer_cast<BackChannel>(path))) return;
    }
}

// True: it was sent, or waits for a slot.
bool Callbacks::start_on(const DelegationKey& key, Recalled& recalled,
                         const std::shared_ptr<BackChannel>& back) {
  if (!back->is_open() || back->faulty) return false;
  for (const auto& bound : shared_.clients.back_channels(back->sessionid())) {
    auto channel = channel_of(bound.callbacks);
    if (channel == nullptr) continue;
    const auto slot = back->take_slot();
    if (!slot) {
      back->queue.push_back(key);
      recalled.phase = Recalled::Phase::Queued;
      recalled.queued_at = back;
      return true;
    }
    recalled.phase = Recalled::Phase::Sent;
    const Sending sending{key, back, *slot, bound.connection};
    call_back(std::move(channel), request_for(recalled, *back, *slot), home_,
              [this, sending](CallbackOutcome outcome) { finish(sending, outcome); });
    return true;
  }
  return false;
}

CallbackRequest Callbacks::request_for(const Recalled& recalled, BackChannel& back,
                                       std::uint32_t slot) {
  const state::Recall& recall = recalled.recall;
  CallbackRequest request = back.request();
  auto& operations = request.compound.argarray;
  operations.resize(2);
  operations[0].argop = v4::OP_CB_SEQUENCE;
  v4::CB_SEQUENCE4args& sequence = operations[0].opcbsequence();
  sequence.csa_sessionid = back.sessionid();
  sequence.csa_sequenceid = back.slot(slot).sequenceid + 1;
  sequence.csa_slotid = slot;
  sequence.csa_highest_slotid = back.highest_slot();
  // 2.10.6.3: the client waits for the Reply of the OPEN if it has not got it yet.
  sequence.csa_referring_call_lists.push_back(
      {recall.granted_by.sessionid, {{recall.granted_by.sequenceid, recall.granted_by.slotid}}});
  operations[1].argop = v4::OP_CB_RECALL;
  v4::CB_RECALL4args& args = operations[1].opcbrecall();
  args.stateid = {recall.stateid.seqid, recall.stateid.other};
  // As key_of() made the key.
  const FileHandles::Sealed handle = shared_.server.handles.seal(
      static_cast<std::uint32_t>(recall.file.file_system), recall.file.handle);
  args.fh = v4::nfs_fh4(handle.bytes());
  return request;
}

void Callbacks::finish(const Sending& sending, CallbackOutcome outcome) {
  const auto found = recalled_.find(sending.key);
  Recalled* const recalled = found == recalled_.end() ? nullptr : &found->second;
  Next next = judge(sending, outcome, recalled);
  BackChannel::Slot& slot = sending.back->slot(sending.slot);
  slot.busy = false;
  if (recalled != nullptr) {
    if (next == Next::AtOnce && ++recalled->tries_in_a_row >= kTriesInARow) next = Next::Later;
    if (next != Next::AtOnce) recalled->tries_in_a_row = 0;
    if (next == Next::Done) recalled->phase = Recalled::Phase::Acknowledged;
    if (next == Next::Later) {
      recalled->phase = Recalled::Phase::Asked;
      recalled->next_try = home_.now() + kInterval;
    }
    if (next == Next::AtOnce) start(sending.key, *recalled);
  }
  serve_queue(*sending.back);
}

Callbacks::Next Callbacks::judge(const Sending& sending, const CallbackOutcome& outcome,
                                 const Recalled* recalled) {
  BackChannel::Slot& slot = sending.back->slot(sending.slot);
  if (outcome.kind == CallbackOutcome::Kind::Unsent) return Next::Later;
  if (outcome.kind == CallbackOutcome::Kind::Lost) {
    // 2.10.6.2: the same request goes on another connection.
    slot.doubtful = sending.key;
    shared_.clients.unbind_connection(sending.back->sessionid(), sending.connection);
    return Next::AtOnce;
  }
  const auto doubtful = std::exchange(slot.doubtful, std::nullopt);
  if (outcome.sequence == v4::NFS4ERR_SEQ_FALSE_RETRY) {
    ++slot.sequenceid;  // What was sent before was executed.
    return Next::AtOnce;
  }
  if (outcome.sequence != v4::NFS4_OK && outcome.sequence != v4::NFS4ERR_RETRY_UNCACHED_REP) {
    slot.doubtful = doubtful;
    return judge_sequence(sending, outcome.sequence);
  }
  ++slot.sequenceid;
  sending.back->misordered = 0;
  if (outcome.operation != v4::NFS4ERR_RETRY_UNCACHED_REP)
    return judge_operation(outcome.operation, recalled);
  return doubtful == sending.key ? Next::Done : Next::AtOnce;
}

// CB_SEQUENCE failed, and its number is as good as before.
Callbacks::Next Callbacks::judge_sequence(const Sending& sending, v4::nfsstat4 status) {
  if (status == v4::NFS4ERR_DELAY) return Next::Later;
  if (status == v4::NFS4ERR_SEQ_MISORDERED && ++sending.back->misordered < 2) return Next::AtOnce;
  sending.back->faulty = true;
  shared_.clients.backchannel_fault(sending.back->sessionid());
  trace(Reason::RpcResultsMalformed, "CB_SEQUENCE", std::to_string(status));
  return Next::AtOnce;
}

Callbacks::Next Callbacks::judge_operation(v4::nfsstat4 status, const Recalled* recalled) const {
  if (status == v4::NFS4ERR_DELAY) return Next::Later;
  if (status != v4::NFS4ERR_BAD_STATEID && status != v4::NFS4ERR_BADHANDLE) return Next::Done;
  const bool early = recalled != nullptr && home_.now() < recalled->asked + kGrantTravels;
  return early ? Next::Later : Next::Done;
}

void Callbacks::serve_queue(BackChannel& back) {
  while (!back.queue.empty()) {
    const DelegationKey key = back.queue.front();
    const auto found = recalled_.find(key);
    if (found == recalled_.end() || found->second.phase != Recalled::Phase::Queued) {
      back.queue.pop_front();
      continue;
    }
    const std::size_t waiting = back.queue.size();
    back.queue.pop_front();
    start(key, found->second);
    // No slot was free after all: it waits again, behind the others.
    if (back.queue.size() == waiting) return;
  }
}

void Callbacks::arm() {
  if (armed_ || recalled_.empty()) return;
  armed_ = true;
  timer_ = home_.after(kInterval, [this] { sweep(); });
}

bool Callbacks::is_over(Recalled& recalled) {
  const state::Stateid& stateid = recalled.recall.stateid;
  if (!shared_.files.is_delegated(stateid)) return true;
  if (home_.now() < recalled.asked + std::chrono::seconds(shared_.options.lease_seconds))
    return false;
  shared_.files.revoke_delegation(stateid);
  trace(Reason::TimedOut, "NFS version 4", "a delegation was not given back, and is revoked");
  return true;
}

void Callbacks::sweep() {
  armed_ = false;
  shared_.expire(home_.now());
  for (auto at = recalled_.begin(); at != recalled_.end();) {
    Recalled& recalled = at->second;
    if (is_over(recalled)) {
      at = recalled_.erase(at);
      continue;
    }
    const bool stranded = recalled.phase == Recalled::Phase::Queued && recalled.queued_at.expired();
    const bool due = recalled.phase == Recalled::Phase::Asked && home_.now() >= recalled.next_try;
    if (stranded || due) start(at->first, recalled);
    ++at;
  }
  arm();
}

}  // namespace stag::nfs::nfs4
