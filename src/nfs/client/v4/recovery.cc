// How a client ID and a session are made, and made again when the server has lost them: one step
// after the other, in the background, for all who wait for it. Each of these goes on as soon as
// there is what it needs: the session, what it is by, and where it opens or locks the end of all
// that is reclaimed.
#include <algorithm>
#include <new>
#include <utility>

#include "base/task_group.h"
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/client/v4/status.h"

namespace stag::nfs::client::nfs4 {
namespace {

// So long what is claimed comes before what may take a file's name away.
constexpr Duration kClaimsFirst = std::chrono::seconds(5);
// A call that waits for it has another context, which may end before.
constexpr OperationContext kRecovering{"make a session", {}};

Error told_to(OperationContext context, const Error& error) {
  if (error.kind == Error::Kind::Call) return Error::of_call(context, error.call);
  if (error.kind == Error::Kind::Nfs) return Error::of_status(context, error.status);
  return error;
}

}  // namespace

// A recovery in the background; whoever has begun it is told how it ended.
struct SessionClient::Recovery {
  bool ended = false;
  std::optional<Error> error{};
  bool no_memory = false;
};

// The server knows this client, and what there is to claim of it is known.
bool SessionClient::is_known() const {
  if (minor_ == 0)
    return client_v40_.step() == session::ClientV40::Step::Ready &&
           claimed_from_ == client_v40_.incarnation();
  return session_.has_session() && claimed_from_ == session_.incarnation();
}

// RFC 8881 8.4.2.1: nothing is opened or locked anew before all is reclaimed. In version 4.0, where
// locks are numbered by their owners, an unlock by one open would get in the way of what is claimed
// by another one.
bool SessionClient::ready_for(const Request& request) const {
  if (!is_known()) return false;
  // RECLAIM_COMPLETE alone is not overtaken: it is sent at once.
  const bool reclaimed = minor_ == 0 ? opens_.reclaimed() : session_.step() == session::Step::Ready;
  if (!reclaimed && opens_.reclaimed()) return false;
  if (!reclaimed && request.opens_or_locks()) return false;
  // A file that was removed cannot be opened again.
  const bool overtakes = request.changes_names() && !opens_.settled() && !put_off_;
  if (overtakes && channel().loop().now() < recovering_since_ + kClaimsFirst) return false;
  return !request.by_open() || opens_.settled(request.by_open()->open);
}

// Where there is no memory for it, it begins anew.
void SessionClient::begin_claiming(std::uint32_t incarnation) {
  // What only a delegation kept open is not claimed.
  for (const session::Opens::Id open : delegations_.on_restart()) {
    opens_.remove(open);
    owners_.renew(open);
  }
  if (ending_)
    opens_.forget_all();
  else
    opens_.on_restart();
  put_off_since_.reset();
  claimed_from_ = incarnation;
}

// RFC 8881 8.4.2.1: the lease of a server that has restarted may be another one. It is asked for in
// the COMPOUND of the last step, which does not fail with it.
void SessionClient::ask_for_lease(Request& request, Values& lease) {
  request.add(v4::OP_PUTROOTFH);
  request.add_getattr(lease_attribute(), lease);
}

void SessionClient::note_lease(const Values& lease) {
  if (!lease.whole() || lease.lease_seconds == 0) return;
  session_.set_lease(std::chrono::seconds(lease.lease_seconds));
  renew_later();
}

Task<Outcome<SessionClient::Attempt>> SessionClient::complete_reclaim(
    OperationContext context, const ProtocolOptions& options) {
  Outcome<Taken> taken = co_await take_turn(context, options);
  if (!taken) co_return Failure{taken.error()};
  if (taken->fate != Fate::Go) co_return Attempt{taken->fate, v4::NFS4_OK};
  Request request;
  const std::size_t at = request.once_only(false).add(v4::OP_RECLAIM_COMPLETE);
  Values lease;
  ask_for_lease(request, lease);
  Outcome<Attempt> came = co_await send_in(std::move(taken->turn), context, request, options);
  // It was done, whatever its results were.
  if (came && came->fate == Fate::Gone) {
    came->fate = session_.on_reclaim_complete(v4::NFS4_OK);
    co_return came;
  }
  if (!came || came->fate != Fate::Go) co_return came;
  if (OpResult* const completed = request.result(at))
    came->status = completed->opreclaim_complete().rcr_status;
  came->fate = session_.on_reclaim_complete(came->status);
  note_lease(lease);
  co_return came;
}

Task<Outcome<SessionClient::Attempt>> SessionClient::take_step(OperationContext context,
                                                               const ProtocolOptions& options) {
  const session::Step step = session_.step();
  if (session_.has_session()) {
    if (claimed_from_ != session_.incarnation()) begin_claiming(session_.incarnation());
    const Which which = step == session::Step::Ready ? Which::Reopens : Which::Reclaims;
    if (due(which) != session::Opens::Due::None)
      co_return co_await take_claims(which, context, options);
    if (step == session::Step::Ready) co_return Attempt{Fate::Go, v4::NFS4_OK};
    co_return co_await complete_reclaim(context, options);
  }
  Request request;
  if (step == session::Step::ExchangeId)
    request.add(v4::OP_EXCHANGE_ID, &Op::opexchange_id, session_.exchange_id());
  else
    request.add(v4::OP_CREATE_SESSION, &Op::opcreate_session, session_.create_session());
  // A session is called back by the connection that makes it.
  Outcome<Attempt> came =
      co_await alone_by(connected(true), context, request, machine_call(context, options));
  if (!came || came->fate != Fate::Go) co_return came;
  OpResult& result = *request.result(kAlone);
  came->fate = step == session::Step::ExchangeId
                   ? session_.on_exchange_id(result.opexchange_id())
                   : session_.on_create_session(result.opcreate_session());
  if (session_.has_session() && callbacks_ != nullptr) {
    callbacks_->begin(session_.sessionid(), session_.back_slots(), this);
    reached_ = session_.back_slots() > 0 && back_ == nullptr;
    if (back_ != nullptr) begin_once(restoring_, &SessionClient::bind_back_connection);
  }
  if (session_.has_left()) begin_once(destroying_, &SessionClient::destroy_left);
  co_return came;
}

// After a fate that is no end: pauses where one is due. An error is the end.
Task<Outcome<Ok>> SessionClient::go_on(Fate fate, v4::nfsstat4 status, OperationContext context,
                                       JukeboxRetry& retry) {
  switch (fate) {
    case Fate::Go:
    case Fate::Again:
      co_return Ok{};
    case Fate::Later:
      if (!retry.left()) co_return Failure{Error::of_status(context, Status::Delay)};
      co_await retry.pause();
      co_return Ok{};
    case Fate::Unsteady:
      if (!retry.left()) break;
      co_await retry.pause();
      co_return Ok{};
    case Fate::Refused:
      co_return Failure{Error::of_status(context, to_status(status))};
    case Fate::Gone:
      co_return Failure{Error::of_protocol(context, "did this, and has lost the results")};
    case Fate::Unbound:  // settled where it was sent
    case Fate::Busy:
    case Fate::Broken:
      break;
  }
  co_return Failure{Error::of_protocol(context, "does not keep to the session that it gave")};
}

// Without memory for it nothing was done.
Task<void> SessionClient::step_to(Outcome<Attempt>& came, OperationContext context,
                                  const ProtocolOptions& options) {
  try {
    if (minor_ == 0)
      came = co_await take_step_v40(context, options);
    else
      came = co_await take_step(context, options);
  } catch (const std::bad_alloc&) {
  }
}

Task<Outcome<Ok>> SessionClient::take_steps(OperationContext context,
                                            const ProtocolOptions& options) {
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  while (!ready()) {
    if (options.cancel.cancelled()) co_return Failure{cancelled_error(context, channel())};
    Outcome<Attempt> came = Attempt{Fate::Later, v4::NFS4ERR_DELAY};
    TaskGroup step;
    step.add(step_to(came, context, options));
    // Behind what was sent, which a grace period may be too short for.
    recovered_.wake_all();
    co_await step.join();
    if (!came) co_return Failure{came.error()};
    if (came->fate == Fate::Go) recovered_to_ = channel().loop().now();
    minor_refused_ = came->status == v4::NFS4ERR_MINOR_VERS_MISMATCH;
    if (session_.has_session()) waiting_.wake_all();
    put_off_ = came->fate == Fate::Later || came->fate == Fate::Unsteady;
    if (put_off_) recovered_.wake_all();
    const Outcome<Ok> going = co_await go_on(came->fate, came->status, context, retry);
    put_off_ = false;
    if (!going) co_return going;
    begin_to_wait(context);
  }
  put_off_since_.reset();
  waiting_.wake_all();
  co_return Ok{};
}

Task<void> SessionClient::recover_for_all(OperationContext context, ProtocolOptions options,
                                          std::shared_ptr<Recovery> recovery) {
  const InProgress in_progress(recovering_, recovered_);
  recovering_since_ = channel().loop().now();
  try {
    const Outcome<Ok> done = co_await take_steps(context, options);
    if (!done) recovery->error = done.error();
  } catch (const std::bad_alloc&) {
    recovery->no_memory = true;
  }
  put_off_ = false;
  recovery->ended = true;
}

// By the time limit and the credentials of the call that begins it; it goes on without that call.
std::shared_ptr<SessionClient::Recovery> SessionClient::begin_recovery(
    OperationContext context, const ProtocolOptions& options) {
  auto recovery = std::make_shared<Recovery>();
  OperationContext as(kRecovering);
  as.waits_since = context.waits_since;
  ProtocolOptions by = options;
  by.cancel = stop_.cancelled() ? CancelToken() : CancelToken(stop_);
  background_.add(recover_for_all(as, std::move(by), recovery));
  return recovery;
}

// Until `request` may be sent; null: until nothing is left to be recovered. What the server puts
// off, or does not answer, is waited for as long as a call would be repeated, and while nothing
// else is done; whoever has begun the recovery is told by its end, which has the same limit.
Task<Outcome<Ok>> SessionClient::recover(OperationContext context, const ProtocolOptions& options,
                                         const Request* request) {
  const JukeboxRetry retry(channel().loop(), options, session_.lease());
  begin_to_wait(context);
  std::shared_ptr<Recovery> own;
  if (!recovering_ && !ready() && !options.cancel.cancelled())
    own = begin_recovery(context, options);
  for (;;) {
    look_at_claims();
    if (request != nullptr ? ready_for(*request) : ready()) co_return Ok{};
    if (own && own->ended) {
      if (own->no_memory) throw std::bad_alloc();
      if (own->error) co_return Failure{told_to(context, *own->error)};
    }
    if (options.cancel.cancelled()) co_return Failure{cancelled_error(context, channel())};
    const TimePoint now = channel().loop().now();
    const bool told = own && !own->ended;
    TimePoint latest = TimePoint::max();
    if (options.timeout != Duration::zero())
      latest = std::max(
          {retry.end(), context.waits_since + options.timeout, recovered_to_ + options.timeout});
    if (!told && (now >= latest || (put_off_ && !retry.left())))
      co_return Failure{Error::of_status(context, Status::Delay)};
    if (!recovering_) {
      own = begin_recovery(context, options);
      continue;
    }
    TimePoint until = told ? TimePoint::max() : latest;
    const TimePoint overtaking = recovering_since_ + kClaimsFirst;
    if (request != nullptr && request->changes_names() && overtaking > now)
      until = std::min(until, overtaking);
    const Outcome<Ok> woken = co_await wait_in(recovered_, context, options, {}, until);
    if (!woken) co_return woken;
  }
}

}  // namespace stag::nfs::client::nfs4
