// The machine credential, and how connections come to belong to the session (RFC 8881 sections
// 2.10.3.1, 2.10.8.3, 18.34).
#include "base/pause.h"
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/client/v4/trunking.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr OperationContext kBinding{"bind the connection to the session", {}};
constexpr OperationContext kJoining{"have another connection join", {}};
constexpr OperationContext kDestroying{"end the session", {}};
// How long one of several connections may take for it, which may be lost again meanwhile.
constexpr Duration kBindPatience = std::chrono::seconds(5);
// Times that the connection is bound to a session that is to be destroyed; it may be lost again.
constexpr int kMostRebinds = 4;

}  // namespace

rpc::CallOptions SessionClient::machine_call(OperationContext context,
                                             const ProtocolOptions& options) const {
  rpc::CallOptions call = call_options(context, options);
  call.credentials = &machine_;
  return call;
}

// Whether the server by `other` has given out the client ID, which there may be none of yet.
Task<bool> SessionClient::joins_v40(rpc::Channel& other, ProtocolOptions options) {
  options.credentials = own_.credentials;
  const Outcome<Ok> named = co_await recover(kJoining, options);
  if (!named) co_return false;
  co_return co_await knows_client(other, clientid(), options);
}

Task<bool> SessionClient::join(rpc::Channel& first, Connection other, ProtocolOptions options) {
  bool joins = false;
  if (minor_ == 0) {
    joins = co_await joins_v40(*other.channel, options);
  } else {
    options.credentials = machine_;
    joins = co_await joins_session(first, *other.channel, session_, minor_, options);
  }
  if (!joins) co_return false;
  connections_.reserve(connections_.size() + 2);
  if (connections_.empty()) connections_.push_back({&first, true});
  connections_.push_back(other);
  co_return true;
}

// One of the connections that is there, for calls that have to go by the same one, or by one that
// callbacks come by; the first, which is made again for the call, where none is.
rpc::Channel& SessionClient::connected(bool called_back) const {
  for (const Connection& connection : connections_)
    if (connection.channel->limits() && (connection.called_back || !called_back))
      return *connection.channel;
  return connections_.empty() ? channel() : *connections_.front().channel;
}

// Which of several connections a call goes by, and so which one the server found unbound, is not
// known: where only the machine credential binds them, all that are there are bound. What comes of
// the first one, by which callbacks come, counts. One that does not answer keeps nobody: it is
// bound when a call by it finds that it has to be.
Task<Outcome<SessionClient::Attempt>> SessionClient::bind_each(OperationContext context,
                                                               Request& request,
                                                               rpc::CallOptions call) {
  bool bound = false;
  Outcome<Attempt> came = Attempt{};
  rpc::CallOptions brief = call;
  brief.timeout = kBindPatience;
  for (std::size_t i = session_.is_protected() ? connections_.size() : 0; i-- > 0;) {
    rpc::Channel& connection = *connections_[i].channel;
    if (!connection.limits()) continue;
    Outcome<Attempt> here = co_await alone_by(connection, context, request, brief);
    if (!here) continue;
    came = std::move(here);
    if (came->fate != Fate::Go || came->status != v4::NFS4_OK) co_return came;
    bound = true;
  }
  if (!bound) came = co_await alone_by(connected(true), context, request, call);
  co_return came;
}

// A connection that was made anew, and on which nothing came yet, is not associated with the
// session (RFC 8881 18.37.3).
Task<std::optional<v4::nfsstat4>> SessionClient::destroy_session(v4::sessionid4 sessionid) {
  Request session, bind;
  session.add(v4::OP_DESTROY_SESSION, &Op::opdestroy_session, {sessionid});
  bind.add(v4::OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session,
           {sessionid, v4::CDFC4_FORE_OR_BOTH, false});
  for (int binds = 0;; ++binds) {
    rpc::Channel& by = connected(false);
    const rpc::CallOptions call = machine_call(kDestroying, own_);
    const Outcome<Attempt> done = co_await alone_by(by, kDestroying, session, call);
    if (!done) co_return std::nullopt;
    const bool unbound = done->status == v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
    if (!unbound || binds >= kMostRebinds) co_return done->status;
    const Outcome<Attempt> bound = co_await alone_by(by, kDestroying, bind, call);
    if (!bound) co_return std::nullopt;
  }
}

Task<Outcome<session::Fate>> SessionClient::bind_once(OperationContext context,
                                                      const ProtocolOptions& options) {
  const v4::sessionid4 of = session_.sessionid();
  Request request;
  request.add(v4::OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session, session_.bind_connection());
  const Outcome<Attempt> came =
      co_await bind_each(context, request, machine_call(context, options));
  if (!came) co_return Failure{came.error()};
  if (came->fate != Fate::Go) co_return came->fate;
  co_return session_.on_bind_connection(of, request.result(kAlone)->opbind_conn_to_session());
}

// One call binds the connection for all; the others wait, and find out by their own calls.
Task<Outcome<session::Fate>> SessionClient::bind_connection(OperationContext context,
                                                            const ProtocolOptions& options) {
  begin_to_wait(context);
  if (binding_) {
    const Outcome<Ok> woken = co_await wait_in(bound_, context, options);
    if (!woken) co_return Failure{woken.error()};
    co_return Fate::Go;
  }
  const InProgress in_progress(binding_, bound_);
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  for (;;) {
    const Outcome<Fate> came = co_await bind_once(context, options);
    if (!came || *came != Fate::Later || !retry.left()) co_return came;
    co_await retry.pause();
    begin_to_wait(context);
  }
}

// For a call of a session that was left: it may have been executed before the connection was lost,
// and in another session it would be once more.
Task<Outcome<session::Fate>> SessionClient::bind_left(Turn turn, OperationContext context,
                                                      const ProtocolOptions& options) {
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  while (session_.knows(turn)) {
    begin_to_wait(context);
    Request request;
    request.add(v4::OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session,
                {session_.sequence(turn, false).sa_sessionid, v4::CDFC4_FORE_OR_BOTH, false});
    const Outcome<Attempt> came =
        co_await bind_each(context, request, machine_call(context, options));
    if (!came) co_return Failure{came.error()};
    const bool bound = came->fate == Fate::Go && came->status == v4::NFS4_OK;
    if (bound && session_.knows(turn)) co_return Fate::Go;
    if (came->status != v4::NFS4ERR_DELAY || !retry.left()) break;
    co_await retry.pause();
  }
  co_return Fate::Again;
}

// A session that was made meanwhile has its own turns.
Task<Outcome<session::Fate>> SessionClient::bound_for(Turn turn, OperationContext context,
                                                      const ProtocolOptions& options) {
  const bool is_left = !session_.has_session() || !session_.slots().current(turn);
  if (is_left) co_return co_await bind_left(turn, context, options);
  const Outcome<Fate> bound = co_await bind_connection(context, options);
  if (!bound || *bound != Fate::Go) co_return bound;
  co_return session_.slots().current(turn) ? Fate::Go : Fate::Again;
}

// A connection that was made again is bound to the session anew. That does not help where the
// server took the connection for the fore channel alone when the first call came by it (18.34.3),
// as Linux's does, or has lost track of the back channel (18.46.3): then there is to be another
// session.
Task<void> SessionClient::restore_back_channel() {
  const Underway restoring(restoring_);
  ProtocolOptions options = background_options();
  options.cancel = CancelToken(stop_);
  const v4::sessionid4 before = session_.sessionid();
  const bool faulty = (session_.status_flags() & v4::SEQ4_STATUS_BACKCHANNEL_FAULT) != 0;
  Outcome<Fate> bound = Fate::Go;
  if (!faulty) bound = co_await bind_connection(kBinding, options);
  const bool same = bound && *bound == Fate::Go && session_.sessionid() == before;
  if (same && (faulty || !session_.has_back_channel())) session_.replace();
  const Request nothing;
  const Outcome<Ok> ready = co_await recover(kBinding, options, &nothing);
  if (ready) reached_ = session_.has_back_channel();
  // Not again at once, where that did not help.
  co_await pause(channel().loop(), session_.lease() / 9, CancelToken(stop_));
}

}  // namespace stag::nfs::client::nfs4
