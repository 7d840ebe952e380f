#include "nfs/v4/callback/callbacks.h"

#include "base/reason.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

namespace {

constexpr Duration kInterval = std::chrono::seconds(1);
constexpr std::uint32_t kTriesInARow = 4;

std::shared_ptr<rpc::Channel> channel_of(const state::CallbackConnection& connection) {
  return std::static_pointer_cast<rpc::Channel>(connection.lock());
}

}  // namespace

Callbacks::Callbacks(SharedState& shared, Loop& home, rpc::Connector* connector)
    : shared_(shared), home_(home), mailbox_(std::make_shared<Mailbox>()) {
  mailbox_->callbacks = this;
  if (connector != nullptr) connections_.emplace(*connector, shared.server.exports);
  shared_.files.on_recall([this](const state::Recall& wanted) { recall(wanted); });
  shared_.now_and_then = [this] { look_again(); };
  shared_.callbacks.store(this, std::memory_order_release);
}

Callbacks::~Callbacks() {
  shared_.now_and_then = {};
  shared_.files.on_recall({});
  shared_.callbacks.store(nullptr, std::memory_order_release);
  const std::scoped_lock lock(mailbox_->mutex);
  mailbox_->callbacks = nullptr;
}

Task<void> Callbacks::stop() {
  if (connections_) co_await connections_->stop();
}

void Callbacks::recall(const state::Recall& wanted) {
  home_.post([this, wanted] {
    const CallbackKey key{CallbackKey::Kind::Recall, wanted.stateid.other};
    try {
      begin(key, [&] { return std::make_unique<DelegationRecall>(shared_, wanted, home_.now()); });
    } catch (...) {
      if (!pending_.contains(key)) shared_.recall_again(wanted.stateid);
      throw;
    }
  });
}

void Callbacks::put_off(state::ClientId of, std::uint32_t export_id) {
  home_.post([this, of, export_id] {
    for (auto& [key, pending] : pending_) {
      const PendingCallback& what = *pending.what;
      if (key.kind != CallbackKey::Kind::Recall || what.clientid != of) continue;
      if (what.export_id == export_id)
        static_cast<DelegationRecall&>(*pending.what).put_off(home_.now());
    }
  });
}

void Callbacks::ask_holder(const state::Recall& delegation, HolderQuestion::Done done) {
  home_.post([this, delegation, done = std::move(done)]() mutable {
    const CallbackKey key{CallbackKey::Kind::Getattr, delegation.stateid.other};
    auto question = std::make_unique<HolderQuestion>(shared_, delegation, home_.now());
    if (const auto found = pending_.find(key); found != pending_.end())
      return static_cast<HolderQuestion&>(*found->second.what).ask(std::move(done));
    question->ask(std::move(done));
    begin(key, [&] { return std::move(question); });
  });
}

void Callbacks::tell(const CallbackKey& key, std::unique_ptr<PendingCallback> pending) {
  home_.post([this, key, pending = std::move(pending)]() mutable {
    begin(key, [&] { return std::move(pending); });
  });
}

template <class Make>
void Callbacks::begin(const CallbackKey& key, Make make) {
  if (pending_.contains(key)) return;
  Pending pending{make()};
  const auto at = pending_.emplace(key, std::move(pending)).first;
  try {
    arm();
  } catch (...) {
    pending_.erase(at);
    throw;
  }
  // What cannot be sent now is sent at the next look.
  start(at->first, at->second);
}

void Callbacks::probe(std::shared_ptr<BackChannel> back, state::ClientId of,
                      UniqueFunction<void()> done) {
  home_.post([this, back = std::move(back), of, done = std::move(done)]() mutable {
    if (back->verdict() == BackChannel::Verdict::Works) return done();
    // Those who asked first wait for the same answer; some have given up meanwhile.
    if (back->askers.size() >= BackChannel::kAskers) return done();
    back->askers.push_back(std::move(done));
    start_probe(back, of);
  });
}

void Callbacks::start_probe(const std::shared_ptr<BackChannel>& back, state::ClientId of) {
  std::uint32_t about = 0;
  if (!back->begin_asking(about, home_.now())) return;
  const auto answered = [this, back, about](bool works) {
    back->asked(about, works);
    for (auto& asker : std::exchange(back->askers, {})) asker();
    arm();  // There may be a connection to look after.
  };
  Connection connection;
  if (!find_connection(*back, connection)) return answered(false);
  CallbackRequest request = back->request();
  request.compound = {};
  request.clientid = of;
  send(connection, back, std::move(request), [answered](const CallbackOutcome& outcome) {
    answered(outcome.kind == CallbackOutcome::Kind::Answered);
  });
}

// The session of the request that it is about comes first: there the referring call means
// something.
void Callbacks::start(const CallbackKey& key, Pending& pending) {
  pending.phase = Pending::Phase::Asked;
  pending.next_try = home_.now() + kInterval;
  const auto paths = shared_.clients.callback_paths(pending.what->clientid);
  const state::SessionId& first = pending.what->caused_by.sessionid;
  for (const bool causing : {true, false})
    for (const auto& [sessionid, path] : paths) {
      if ((sessionid == first) != causing) continue;
      if (start_on(key, pending, std::static_pointer_cast<BackChannel>(path))) return;
    }
}

bool Callbacks::find_connection(const BackChannel& back, Connection& found) const {
  if (back.address() != nullptr) return connections_.has_value();
  for (const auto& bound : shared_.clients.back_channels(back.sessionid()))
    if (auto channel = channel_of(bound.callbacks)) {
      found = {std::move(channel), bound.connection};
      return true;
    }
  return false;
}

void Callbacks::send(const Connection& connection, const std::shared_ptr<BackChannel>& back,
                     CallbackRequest request, CallbackDone done) {
  if (connection.channel == nullptr)
    connections_->call(back, std::move(request), std::move(done));
  else
    call_back(connection.channel, std::move(request), home_, std::move(done));
}

// True: it was sent, or waits for a slot.
bool Callbacks::start_on(const CallbackKey& key, Pending& pending,
                         const std::shared_ptr<BackChannel>& back) {
  Connection connection;
  if (!back->is_open() || back->faulty || !find_connection(*back, connection)) return false;
  const auto slot = back->take_slot(home_.now());
  if (!slot) {
    back->queue.push_back(key);
    pending.phase = Pending::Phase::Queued;
    pending.queued_at = back;
    return true;
  }
  pending.phase = Pending::Phase::Sent;
  const Sending sending{key, back, *slot, connection.id};
  try {
    send(connection, back, request_for(*pending.what, *back, *slot),
         [this, sending](const CallbackOutcome& outcome) { finish(sending, outcome); });
  } catch (...) {
    back->slot(*slot).busy = false;
    pending.phase = Pending::Phase::Asked;
    throw;
  }
  return true;
}

CallbackRequest Callbacks::request_for(const PendingCallback& what, BackChannel& back,
                                       std::uint32_t slot) const {
  CallbackRequest request = back.request();
  request.clientid = what.clientid;
  request.export_id = what.export_id;
  auto& operations = request.compound.argarray;
  if (back.address() != nullptr) {
    operations.resize(1);
    what.fill(operations[0]);
    return request;
  }
  operations.resize(2);
  operations[0].argop = v4::OP_CB_SEQUENCE;
  v4::CB_SEQUENCE4args& sequence = operations[0].opcbsequence();
  sequence.csa_sessionid = back.sessionid();
  sequence.csa_sequenceid = back.slot(slot).sequenceid + 1;
  sequence.csa_slotid = slot;
  sequence.csa_highest_slotid = back.highest_slot();
  // 2.10.6.3: the client waits for the Reply to that request if it has not got it yet.
  const state::SlotRef& by = what.caused_by;
  sequence.csa_referring_call_lists.push_back({by.sessionid, {{by.sequenceid, by.slotid}}});
  what.fill(operations[1]);
  return request;
}

void Callbacks::finish(const Sending& sending, CallbackOutcome outcome) {
  const auto found = pending_.find(sending.key);
  const bool wanted = found != pending_.end();
  const Next next = judge(sending, outcome, wanted ? found->second.what.get() : nullptr);
  sending.back->slot(sending.slot).busy = false;
  if (wanted) proceed(found, next);
  serve_queue(*sending.back);
  arm();
}

void Callbacks::proceed(PendingMap::iterator at, Next next) {
  Pending& pending = at->second;
  if (next == Next::AtOnce && ++pending.tries_in_a_row >= kTriesInARow) next = Next::Later;
  if (next != Next::AtOnce) pending.tries_in_a_row = 0;
  switch (next) {
    case Next::Answered:
      pending.phase = Pending::Phase::Answered;
      return;
    case Next::Ended:
      pending_.erase(at);
      return;
    case Next::Later:
      pending.phase = Pending::Phase::Asked;
      pending.next_try = home_.now() + kInterval;
      return;
    case Next::AtOnce:
      return start(at->first, pending);
  }
}

// `what` null: it is over.
Callbacks::Next Callbacks::judge(const Sending& sending, CallbackOutcome& outcome,
                                 PendingCallback* what) {
  BackChannel::Slot& slot = sending.back->slot(sending.slot);
  if (outcome.kind == CallbackOutcome::Kind::Unsent) return Next::Later;
  const bool lost = outcome.kind == CallbackOutcome::Kind::Lost;
  if (sending.back->address() != nullptr) {
    sending.back->found(!lost);
    return lost ? Next::Later : judge_answer(outcome, what);
  }
  if (lost) {
    // 2.10.6.2: the same request goes on another connection.
    const bool others =
        slot.doubtful && (slot.doubtful->others || slot.doubtful->key != sending.key);
    slot.doubtful = BackChannel::Slot::Doubtful{sending.key, others};
    shared_.clients.unbind_back_channel(sending.back->sessionid(), sending.connection);
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
  // 2.10.6.1.3: it may be what the client has kept of the request that was sent with this number
  // before. Then this one was not executed, as a client need not compare them, and attributes are
  // those of that time.
  const bool kept = doubtful && (doubtful->others || doubtful->key != sending.key ||
                                 sending.key.kind == CallbackKey::Kind::Getattr);
  if (kept) return Next::AtOnce;
  if (outcome.operation == v4::NFS4ERR_RETRY_UNCACHED_REP) {
    if (!doubtful) return Next::AtOnce;
    outcome.operation = v4::NFS4_OK;  // The client has executed it.
  }
  return judge_answer(outcome, what);
}

Callbacks::Next Callbacks::judge_answer(const CallbackOutcome& outcome, PendingCallback* what) {
  if (what == nullptr) return Next::Ended;
  switch (what->answered(outcome, home_.now())) {
    case PendingCallback::Next::Answered:
      return Next::Answered;
    case PendingCallback::Next::Ended:
      return Next::Ended;
    case PendingCallback::Next::Later:
      break;
  }
  return Next::Later;
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

void Callbacks::serve_queue(BackChannel& back) {
  while (!back.queue.empty()) {
    const CallbackKey key = back.queue.front();
    const auto found = pending_.find(key);
    if (found == pending_.end() || found->second.phase != Pending::Phase::Queued) {
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
  const bool connected = connections_ && !connections_->empty();
  if (armed_ || (pending_.empty() && wanted_.empty() && !connected)) return;
  unarmed_ = true;
  timer_ = home_.after(kInterval, [this] { sweep(); });
  armed_ = true;
  unarmed_ = false;
}

void Callbacks::look_again() {
  if (unarmed_) home_.post([this] { arm(); });
}

void Callbacks::sweep() {
  armed_ = false;
  arm();
  shared_.expire(home_.now());
  if (connections_) connections_->sweep(home_.now());
  std::erase_if(wanted_, [this](const Wanted& wanted) { return ask_back(wanted); });
  sweep_pending();
}

void Callbacks::sweep_pending() {
  for (auto at = pending_.begin(); at != pending_.end();) {
    Pending& pending = at->second;
    if (pending.what->is_over(home_.now())) {
      at = pending_.erase(at);
      continue;
    }
    const bool stranded = pending.phase == Pending::Phase::Queued && pending.queued_at.expired();
    const bool due = pending.phase == Pending::Phase::Asked && home_.now() >= pending.next_try;
    // There was no memory to say what came of it.
    const bool forgotten = pending.phase == Pending::Phase::Sent &&
                           home_.now() >= pending.next_try + BackChannel::kForgotten;
    if (stranded || due || forgotten) start(at->first, pending);
    ++at;
  }
}

}  // namespace stag::nfs::nfs4
