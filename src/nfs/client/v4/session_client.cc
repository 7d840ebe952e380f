#include "nfs/client/v4/session_client.h"

#include <algorithm>
#include <random>

#include "base/pause.h"
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/run.h"
#include "nfs/client/v4/status.h"
#include "nfs/ulb/nfs4_client.h"
#include "rpc/client_security.h"

namespace stag::nfs::client::nfs4 {
namespace {

// Goodbyes are a courtesy: a server forgets a client whose lease has run out.
constexpr Duration kGoodbye = std::chrono::seconds(2);
constexpr OperationContext kEnding{"end the session", {}};
constexpr std::string_view kOwnerPrefix = "stag ";
// Times that an operation is tried whose stateid the server does not know.
constexpr int kMostClaims = 3;
// Times that connections are bound for one call; each may be lost again.
constexpr int kMostBinds = 16;
// Times that an operation is tried whose results were lost, each time with a connection.
constexpr int kMostRepeats = 32;

// RFC 8881 2.4: unlike that of any other client, and of any other mount of this
// machine.
session::Identity fresh_identity(const Callbacks& callbacks, const rpc::Credentials& machine) {
  std::random_device random;
  session::Identity identity;
  identity.called_back = callbacks.sessions != nullptr && callbacks.back == nullptr;
  identity.called_back_elsewhere = callbacks.sessions != nullptr && callbacks.back != nullptr;
  identity.machine_credential = machine.security() != nullptr && machine.security()->transforms();
  identity.owner = kOwnerPrefix;
  constexpr std::string_view kHex = "0123456789abcdef";
  for (int i = 0; i < 4; ++i)
    for (std::uint32_t word = random(), digit = 0; digit < 8; ++digit, word >>= 4)
      identity.owner.push_back(kHex[word & 15]);
  store_be(identity.verifier.data(), static_cast<std::uint32_t>(random()));
  store_be(identity.verifier.data() + 4, static_cast<std::uint32_t>(random()));
  return identity;
}

bool keeps_turn(session::Fate fate) {
  return fate == session::Fate::Unbound || fate == session::Fate::Busy;
}

}  // namespace

SessionClient::SessionClient(rpc::Channel& channel, const ProtocolOptions& options,
                             std::uint32_t minor, Callbacks callbacks)
    : rpc_(channel, ulb::nfs4_client(), options.credentials),
      minor_(minor),
      own_(options),
      machine_(options.machine_credentials.value_or(options.credentials)),
      session_(fresh_identity(callbacks, machine_)),
      client_v40_(fresh_identity({}, {})),
      opens_(minor > 0 ? session::Opens::Version::WithSessions : session::Opens::Version::V40),
      callbacks_(minor > 0 ? callbacks.sessions : nullptr),
      listening_(minor > 0 ? nullptr : callbacks.listening),
      back_(callbacks.back),
      next_number_(std::uint64_t{std::random_device{}()} << 32 | 1) {
  own_.cancel = {};
  own_.timeout = kGoodbye;
  if (listening_ == nullptr) return;
  client_v40_.listens(listening_->listening());
  listening_->begin(this);
}

SessionClient::~SessionClient() {
  if (callbacks_ != nullptr) callbacks_->end(this);
  if (listening_ != nullptr) listening_->begin(nullptr);
}

Outcome<SessionClient::Attempt> SessionClient::attempt_of(
    const OperationContext& context, const Request& request,
    const std::optional<rpc::CallError>& fault) {
  if (fault) return Failure{Error::of_call(context, *fault)};
  heard_ = channel().loop().now();
  if (!request.answered_in_order())
    return Failure{Error::of_protocol(context, "sent results of other operations")};
  return Attempt{Fate::Go, request.status()};
}

Task<Outcome<SessionClient::Attempt>> SessionClient::send(OperationContext context,
                                                          Request& request, rpc::CallOptions call) {
  Exchange exchange(rpc_, minor_, nullptr, request, call);
  Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
  co_return attempt_of(context, request, exchange.take(reply));
}

Task<Outcome<SessionClient::Attempt>> SessionClient::alone(OperationContext context,
                                                           Request& request,
                                                           rpc::CallOptions call) {
  Outcome<Attempt> came = co_await send(context, request, call);
  if (came && request.result(kAlone) == nullptr) came->fate = Fate::Refused;
  co_return came;
}

Task<Outcome<SessionClient::Attempt>> SessionClient::alone_by(rpc::Channel& connection,
                                                              OperationContext context,
                                                              Request& request,
                                                              rpc::CallOptions call) {
  const rpc::Client by(connection, ulb::nfs4_client(), own_.credentials);
  Exchange exchange(by, minor_, nullptr, request, call);
  Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
  Outcome<Attempt> came = attempt_of(context, request, exchange.take(reply));
  if (came && request.result(kAlone) == nullptr) came->fate = Fate::Refused;
  co_return came;
}

// What came of a call that was sent in this turn.
inline void SessionClient::note_results(const Turn& turn, const Request& request,
                                        Outcome<Attempt>& came, TimePoint sent) {
  if (!came || request.sequence_result() == nullptr) {
    session_.on_loss(turn);
    if (came) came->fate = Fate::Refused;
    return;
  }
  const bool lapsed = session_.lapsed(heard_);
  came->fate = session_.on_sequence(turn, *request.sequence_result(), sent);
  // RFC 8881 2.10.6.1.3: said in the place of the operation behind SEQUENCE.
  if (came->fate == Fate::Go && came->status == v4::NFS4ERR_RETRY_UNCACHED_REP)
    came->fate = Fate::Gone;
  // What was held while the lease ran out may have been revoked, and others may have written.
  if (lapsed && came->fate == Fate::Go) give_back_all();
  note_flags();
}

// The turn has ended with the call, but for a fate that keeps it: then the call goes again.
Outcome<SessionClient::Attempt> SessionClient::ended(
    const OperationContext& context, HeldTurn& held, Request& request, Exchange& exchange,
    Result<rpc::ReplyMessage, rpc::CallError>& reply) {
  Outcome<Attempt> came = attempt_of(context, request, exchange.take(reply));
  if (exchange.was_repeated()) held.turn().repeated = true;
  if (!came && begin_taking_back(held, request, came.error())) return came;
  note_results(held.turn(), request, came, exchange.sent());
  if (came && keeps_turn(came->fate)) return came;
  held.release();
  if (!waiting_.empty()) wake_waiting();
  if (came && came->fate == Fate::Go && request.by_open()) note_lock(request);
  return came;
}

Task<Outcome<SessionClient::Attempt>> SessionClient::send_in(HeldTurn held,
                                                             OperationContext context,
                                                             Request& request,
                                                             const ProtocolOptions& options) {
  const rpc::CallOptions call = call_options(context, request, options);
  Exchange exchange = exchange_in(held.turn(), request, call);
  Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
  Outcome<Attempt> came = ended(context, held, request, exchange, reply);
  if (came && keeps_turn(came->fate))
    came = co_await send_again_in(came->fate, std::move(held), context, request, options);
  co_return came;
}

// RFC 8881 15.1.1.3: in the same turn, as the server may be at this request already. With another
// number it would run twice, and with this one another request would get its results.
Task<Outcome<SessionClient::Attempt>> SessionClient::send_again_in(Fate fate, HeldTurn held,
                                                                   OperationContext context,
                                                                   Request& request,
                                                                   const ProtocolOptions& options) {
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  for (int binds = 0;;) {
    if (fate == Fate::Unbound) {
      if (++binds > kMostBinds) co_return Attempt{Fate::Broken, v4::NFS4ERR_DELAY};
      const Outcome<Fate> bound = co_await bound_for(held.turn(), context, options);
      if (!bound) co_return Failure{bound.error()};
      if (*bound != Fate::Go) co_return Attempt{*bound, v4::NFS4ERR_DELAY};
    } else {
      if (!retry.left()) co_return leave_busy(held, context, request, options);
      held.turn().repeated = true;
      co_await retry.pause();
      begin_to_wait(context);
      if (!session_.knows(held.turn())) co_return Attempt{Fate::Again, v4::NFS4ERR_DELAY};
    }
    const rpc::CallOptions call = call_options(context, request, options);
    Exchange exchange = exchange_in(held.turn(), request, call);
    Result<rpc::ReplyMessage, rpc::CallError> reply = co_await exchange.send();
    Outcome<Attempt> came = ended(context, held, request, exchange, reply);
    if (!came || !keeps_turn(came->fate)) co_return came;
    fate = came->fate;
  }
}

// The server is still busy with it, or says so of whatever it is sent: the slot is in doubt.
Failure<Error> SessionClient::leave_busy(HeldTurn& held, OperationContext context, Request& request,
                                         const ProtocolOptions& options) {
  const Error error = options.cancel.cancelled() ? cancelled_error(context, channel())
                                                 : Error::of_status(context, Status::Delay);
  static_cast<void>(begin_taking_back(held, request, error));
  return Failure{error};
}

Task<Outcome<Ok>> SessionClient::establish(OperationContext context,
                                           const ProtocolOptions& options) {
  if (minor_ > 0) co_return co_await recover(context, options);
  Request root;
  root.add(v4::OP_PUTROOTFH);
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  for (;;) {
    const Outcome<Attempt> came = co_await alone(context, root, call_options_of(options));
    if (!came) co_return Failure{came.error()};
    minor_refused_ = came->status == v4::NFS4ERR_MINOR_VERS_MISMATCH;
    if (came->status == v4::NFS4_OK) co_return Ok{};
    if (!asks_to_wait(came->status) || !retry.left())
      co_return Failure{Error::of_status(context, to_status(came->status))};
    co_await retry.pause();
  }
}

v4::verifier4 SessionClient::fresh_verifier() {
  v4::verifier4 verifier;
  store_be(verifier.data(), next_number_++);
  return verifier;
}

v4::clientid4 SessionClient::clientid() const {
  return minor_ > 0 ? session_.clientid() : client_v40_.clientid();
}

// Every open has an owner of its own: numbers begin with 0, and nobody else's open is concerned.
void SessionClient::fill_in_owner(Request& request) {
  if (!request.open_place()) return;
  v4::OPEN4args& args = request.operation(*request.open_place()).opopen();
  std::array<std::byte, 8> owner;
  store_be(owner.data(), request.open_owner() ? *request.open_owner() : next_number_++);
  args.seqid = 0;
  args.owner.clientid = clientid();
  args.owner.owner = Rope::copy_of(owner);
}

// False when what the COMPOUND is by is lost.
inline bool SessionClient::fill_in(Request& request) {
  fill_in_owner(request);
  return !request.by_open() || fill_in_stateid(request);
}

Task<Outcome<SessionClient::Attempt>> SessionClient::attempt(OperationContext context,
                                                             Request& request,
                                                             const ProtocolOptions& options) {
  if (minor_ == 0) co_return co_await attempt_v40(context, request, options);
  begin_to_wait(context);
  if (!ready()) {
    const Outcome<Ok> recovered = co_await recover(context, options, &request);
    if (!recovered) co_return Failure{recovered.error()};
  }
  if (!fill_in(request)) co_return Failure{Error::of_status(context, Status::StateLost)};
  Outcome<Taken> taken = co_await take_turn(context, options);
  if (!taken) co_return Failure{taken.error()};
  if (taken->fate != Fate::Go) co_return Attempt{taken->fate, v4::NFS4ERR_DELAY};
  co_return co_await send_in(std::move(taken->turn), context, request, options);
}

inline bool SessionClient::counts(const Outcome<Attempt>& came, const Request& request) {
  return came && came->fate == Fate::Go && (request.expects(came->status) || request.is_done());
}

inline void SessionClient::note_run(const Request& request, bool changes, bool answered) {
  if (changes) {
    delegations_.on_change();
    forget_sizes(request, answered);
  }
  begin_again();
}

// None, where anything is to be waited for or recovered.
inline SessionClient::HeldTurn SessionClient::turn_at_once(Request& request) {
  const bool at_once = minor_ > 0 && ready() && session_.slots().has_certain() && fill_in(request);
  if (!at_once) return {};
  return {*this, *session_.take()};
}

// What this client changes, it does not remember as it was, nor as it was seen meanwhile.
SessionClient::Run::Run(SessionClient& client, const OperationContext& context, Request& request,
                        const ProtocolOptions& options)
    : client_(client),
      context_(context),
      request_(request),
      options_(options),
      changes_(request.changes_files()),
      held_(client.turn_at_once(request)),
      call_(client.call_options(context, request, options)) {
  if (changes_) client.delegations_.on_change();
  if (!held_.has_turn()) return;
  const v4::SEQUENCE4args sequence =
      client.session_.sequence(held_.turn(), request.runs_once_only());
  exchange_.emplace(client.rpc_, client.minor_, &sequence, request, call_);
}

void SessionClient::Run::take(Result<rpc::ReplyMessage, rpc::CallError>&& reply) {
  Outcome<Attempt> came = client_.ended(context_, held_, request_, *exchange_, reply);
  answered_ = counts(came, request_);
  if (answered_)
    client_.note_run(request_, changes_, true);
  else
    came_.emplace(std::move(came));
}

Task<void> SessionClient::Run::rest() {
  if (!came_)
    came_.emplace(co_await client_.attempt(context_, request_, options_));
  else if (*came_ && keeps_turn((*came_)->fate))
    came_.emplace(co_await client_.send_again_in((*came_)->fate, std::move(held_), context_,
                                                 request_, options_));
  if (*came_ && !counts(*came_, request_))
    came_.emplace(co_await client_.try_again(**came_, context_, request_, options_));
  answered_ = came_->ok();
  client_.note_run(request_, changes_, answered_);
}

Task<Outcome<Reply>> SessionClient::run(OperationContext context, Request& request,
                                        const ProtocolOptions& options) {
  Run run(*this, context, request, options);
  if (run.begun()) run.take(co_await run.send());
  if (!run.answered()) co_await run.rest();
  if (!run.answered()) co_return Failure{run.error()};
  co_return Reply(request);
}

// Of what a change may have made larger or smaller; a WRITE that was answered says by how much.
void SessionClient::forget_sizes(const Request& request, bool answered) {
  if (answered && request.writes()) return;
  request.for_each_handle(
      [this](const Handle& file) { delegations_.on_resize(file, std::nullopt); });
}

// After an attempt that does not count: until one does, or nothing is left to be tried.
Task<Outcome<SessionClient::Attempt>> SessionClient::try_again(Attempt tried,
                                                               OperationContext context,
                                                               Request& request,
                                                               const ProtocolOptions& options) {
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  Outcome<Attempt> came = std::move(tried);
  int gone = 0;
  int lost = 0;
  int again = 0;
  while (came && !counts(came, request)) {
    bool state_lost = came->fate == Fate::Go && request.by_open() && means_lost_state(came->status);
    if (state_lost && came->status == v4::NFS4ERR_OLD_STATEID) {
      const Outcome<bool> newer = co_await has_newer_stateid(context, request, options);
      if (!newer) co_return Failure{newer.error()};
      if (*newer) came->fate = Fate::Again;
      state_lost = !*newer;
    }
    if (state_lost) {
      // The open is claimed again before the next attempt. Of one that has restarted, which may
      // have said so with this answer, all that there was before is reclaimed, and locks are not
      // lost.
      if (claimed_from_ == (minor_ > 0 ? session_.incarnation() : client_v40_.incarnation())) {
        opens_.on_bad_stateid(request.by_open()->open, sent_stateid(request));
        if (const auto delegation = delegations_.take(request.by_open()->open))
          begin_return(*delegation);
      }
      if (++lost == kMostClaims) co_return Failure{Error::of_status(context, Status::StateLost)};
    } else if (came->fate == Fate::Go) {
      came->fate = asks_to_wait(came->status) && retry.left() ? Fate::Later : Fate::Refused;
    }
    // Of a server that loses everything again and again others may hear first each time.
    if (came->fate == Fate::Again && ++again > kMostRepeats && !retry.left())
      came->fate = Fate::Unsteady;
    // Nothing was changed: it may run twice.
    const bool repeats =
        came->fate == Fate::Gone && !request.runs_once_only() && ++gone < kMostRepeats;
    if (!state_lost && !repeats) {
      const Outcome<Ok> going = co_await go_on(came->fate, came->status, context, retry);
      if (!going) co_return Failure{going.error()};
    }
    came = co_await attempt(context, request, options);
  }
  co_return came;
}

// When the calls of a session that was left have ended. What the server neither destroys nor knows
// is asked for again, behind the others.
Task<void> SessionClient::destroy_left() {
  const Underway destroying(destroying_);
  while (session_.has_left()) {
    co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
    if (stop_.cancelled()) co_return;
    const std::optional<v4::sessionid4> left = session_.left_idle();
    if (!left) continue;
    const std::optional<v4::nfsstat4> said = co_await destroy_session(*left);
    const bool gone = said && (*said == v4::NFS4_OK || *said == v4::NFS4ERR_BADSESSION ||
                               *said == v4::NFS4ERR_WRONG_CRED);
    if (gone)
      session_.on_destroyed(*left);
    else
      session_.on_kept(*left);
  }
}

// Whether the last recovery did not come to its end: the server may wait for this client in its
// grace period, or keep what this has claimed. In version 4.0 it keeps nothing before that.
bool SessionClient::is_cut_off() const {
  const bool begun = minor_ > 0 ? session_.incarnation() > 0
                                : client_v40_.step() == session::ClientV40::Step::Ready;
  return begun && !ready();
}

// False: the server did not answer.
Task<bool> SessionClient::come_back() {
  if (!is_cut_off()) co_return true;
  const Outcome<Ok> back = co_await recover(kEnding, own_);
  co_return back || back.error().kind != Error::Kind::Call;
}

// What was left open: until its lease has run out it would be in the way of others, and keep the
// client ID (RFC 8881 18.50.3). False: the server did not answer, or puts it off.
Task<bool> SessionClient::close_all() {
  while (ready() && !opens_.empty()) {
    const session::Opens::Id open = opens_.first();
    const File file(*Handle::from(opens_.file(open)->bytes()), open);
    const Outcome<Ok> closed = co_await close_open(kEnding, file, own_);
    const bool late = !closed && closed.error().is(Status::Delay);
    if (late || (!closed && closed.error().kind == Error::Kind::Call)) co_return false;
  }
  co_return true;
}

// False: the server does not know the client ID.
Task<bool> SessionClient::give_back_clientid() {
  while (const std::optional<v4::sessionid4> left = session_.left_behind()) {
    const std::optional<v4::nfsstat4> said = co_await destroy_session(*left);
    if (!said) co_return true;
    session_.on_destroyed(*left);
  }
  if (session_.has_session()) {
    const std::optional<v4::nfsstat4> said = co_await destroy_session(session_.sessionid());
    if (!said) co_return true;
  }
  if (!session_.has_clientid()) co_return true;
  Request client;
  client.add(v4::OP_DESTROY_CLIENTID, &Op::opdestroy_clientid, {session_.clientid()});
  const Outcome<Attempt> done = co_await alone(kEnding, client, machine_call(kEnding, own_));
  co_return !done || done->status != v4::NFS4ERR_STALE_CLIENTID;
}

// RFC 8881 8.4.2: a server that has restarted may wait for this client in its grace period, until
// it has come back and says that it is done.
Task<void> SessionClient::say_goodbye() {
  const bool known = co_await give_back_clientid();
  if (known) co_return;
  session_.replace();
  const Outcome<Ok> back = co_await recover(kEnding, own_);
  co_await background_.join();
  if (callbacks_ != nullptr) callbacks_->end(this);
  if (back) co_await give_back_clientid();
}

Task<void> SessionClient::close() {
  renewal_.cancel();
  stop_.cancel();
  co_await background_.join();
  give_back_all();
  give_back_due();
  co_await background_.join();
  // What was delegated for writing has been written by then, with opens that were claimed for it.
  ending_ = true;
  opens_.give_up_claims();
  bool heard = co_await come_back();
  if (heard) heard = co_await close_all();
  co_await background_.join();
  if (callbacks_ != nullptr) callbacks_->end(this);
  if (listening_ != nullptr) listening_->begin(nullptr);
  if (minor_ == 0) co_return;  // a client ID ends with its lease
  if (heard) co_await say_goodbye();
  if (own_.machine_credentials && machine_.security() != nullptr)
    co_await machine_.security()->end(channel());
}

}  // namespace stag::nfs::client::nfs4
