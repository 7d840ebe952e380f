// How a client ID and a session are made, and made again when the server has lost them: one step
// after the other, by one caller for all.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/task_group.h"
#include "nfs/client/protocol/retrying_client.h"
#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/claims.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/client/v4/status.h"

namespace stag::nfs::client::nfs4 {

using Claim = session::Opens::Claim;

namespace {

constexpr std::size_t kClaimsAtOnce = 16;

}  // namespace

bool SessionClient::ready() const {
  return minor_ == 0 ? ready_v40() : session_.step() == session::Step::Ready && opens_.settled();
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

std::vector<Claim> SessionClient::next_claims() {
  if (claimed_from_ != session_.incarnation()) begin_claiming(session_.incarnation());
  // A grace period may be too short for a round trip for each. A client that ends is in no hurry.
  const std::size_t most = ending_ ? 1 : kClaimsAtOnce;
  const std::size_t at_once = std::clamp<std::size_t>(session_.slots().usable(), 1, most);
  if (session_.step() == session::Step::ReclaimComplete) return opens_.next_reclaims(at_once);
  std::vector<Claim> claims;
  if (session_.step() != session::Step::Ready) return claims;
  if (std::optional<Claim> claim = opens_.next_reopen()) claims.push_back(*std::move(claim));
  return claims;
}

Request SessionClient::request_of(const Claim& claim) const {
  Request request;
  if (claim.kind == Claim::Kind::Free) {
    request.add(v4::OP_FREE_STATEID, &Op::opfree_stateid, {claim.stateid});
    return request;
  }
  request.put_handle(*opens_.file(claim.open));
  if (claim.kind == Claim::Kind::ReclaimLock) {
    v4::LOCK4args args = lock_of(claim);
    fill_in_lock(args, {0, claim.open, claim.owner, {}});
    request.add(v4::OP_LOCK, &Op::oplock, std::move(args));
    return request;
  }
  const bool reclaim = claim.kind == Claim::Kind::Reclaim;
  v4::OPEN4args args;
  args.share_access = opens_.access(claim.open) | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.claim.claim = reclaim ? v4::CLAIM_PREVIOUS : v4::CLAIM_FH;
  if (reclaim) args.claim.delegate_type() = v4::OPEN_DELEGATE_NONE;
  request.add_open(std::move(args), claim.open);
  return request;
}

// Others may have no right to what its holder has opened.
ProtocolOptions SessionClient::options_of(const Claim& claim,
                                          const ProtocolOptions& options) const {
  ProtocolOptions of_holder = options;
  if (claim.kind == Claim::Kind::Free) return of_holder;
  const std::shared_ptr<const session::Opener> opener = opens_.opener(claim.open);
  of_holder.credentials = opener ? opener->credentials : own_.credentials;
  return of_holder;
}

// A KDC that cannot be reached may be, a while later: until then the claims of others are made, and
// nobody waits for it longer than a grace period takes as a rule.
Outcome<SessionClient::Attempt> SessionClient::claim_failed(const Claim& claim, const Error& error,
                                                            const ProtocolOptions& of_holder,
                                                            const ProtocolOptions& options) {
  const TimePoint now = channel().loop().now();
  Unmade what = unmade(error, of_holder.credentials, options.credentials);
  if (what == Unmade::Told) return Failure{error};
  if (!put_off_since_) put_off_since_ = now;
  if (what == Unmade::PutOff && now - *put_off_since_ >= session_.lease()) what = Unmade::Refused;
  if (what == Unmade::PutOff) {
    const rpc::ClientSecurity* const security = of_holder.credentials.security();
    opens_.on_put_off(claim, [&](const session::Opener* other) {
      return (other != nullptr ? other->credentials : own_.credentials).security() == security;
    });
    return Attempt{Fate::Later, v4::NFS4ERR_DELAY};
  }
  opens_.on_refused(claim);
  return Attempt{Fate::Go, v4::NFS4_OK};
}

// One claim; refused, it is marked so, and recovery goes on with the next one.
Task<Outcome<SessionClient::Attempt>> SessionClient::take_claim(OperationContext context,
                                                                Claim claim,
                                                                const ProtocolOptions& options) {
  // Before it waits for a turn, in which the program may close what is claimed.
  Request request = request_of(claim);
  request.once_only(false);
  fill_in_owner(request);
  const ProtocolOptions of_holder = options_of(claim, options);
  Outcome<Taken> taken = co_await take_turn(context, options);
  if (!taken) co_return Failure{taken.error()};
  if (taken->fate != Fate::Go) co_return Attempt{taken->fate, v4::NFS4_OK};
  Outcome<Attempt> came = co_await send_in(std::move(taken->turn), context, request, of_holder);
  if (!came) co_return claim_failed(claim, came.error(), of_holder, options);
  if ((came->fate != Fate::Go && came->fate != Fate::Gone)) co_return came;
  if (came->fate == Fate::Go && asks_to_wait(came->status)) {
    came->fate = Fate::Later;
    co_return came;
  }
  std::optional<v4::stateid4> stateid;
  if (came->fate == Fate::Go && came->status == v4::NFS4_OK) {
    Reply reply(request);
    stateid = stateid_of(claim.kind, reply);
    if (auto* const opened = opened_by(claim.kind, reply))
      request.for_each_handle(
          [&](const Handle& file) { decline_delegation(file, opened->resok4().delegation); });
  }
  if (stateid)
    opens_.on_claimed(claim, *stateid);
  else
    opens_.on_refused(claim);
  came->fate = Fate::Go;
  co_return came;
}

Task<void> SessionClient::claim_to(Outcome<Attempt>& came, OperationContext context, Claim claim,
                                   const ProtocolOptions& options) {
  came = co_await take_claim(context, std::move(claim), options);
}

Task<Ok> SessionClient::begin_claims(TaskGroup& all, OperationContext context,
                                     std::vector<Claim> claims, const ProtocolOptions& options,
                                     std::vector<Outcome<Attempt>>& came) {
  for (std::size_t i = 0; i < claims.size(); ++i)
    all.add(claim_to(came[i], context, std::move(claims[i]), options));
  co_return Ok{};
}

// What one of them is to wait for, they all wait for; those that were granted are claimed no more.
Task<Outcome<SessionClient::Attempt>> SessionClient::take_claims(OperationContext context,
                                                                 std::vector<Claim> claims,
                                                                 const ProtocolOptions& options) {
  if (claims.size() == 1)
    co_return co_await take_claim(context, std::move(claims.front()), options);
  // What there is no memory for is claimed later.
  std::vector<Outcome<Attempt>> came(claims.size(), Attempt{Fate::Later, v4::NFS4ERR_DELAY});
  TaskGroup all;
  co_await joined(all, begin_claims(all, context, std::move(claims), options, came));
  for (Outcome<Attempt>& one : came)
    if (!one) co_return std::move(one);
  for (const Outcome<Attempt>& one : came)
    if (one->fate != Fate::Go) co_return *one;
  co_return came.front();
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
  std::vector<Claim> claims = next_claims();
  if (!claims.empty()) co_return co_await take_claims(context, std::move(claims), options);
  if (step == session::Step::ReclaimComplete) co_return co_await complete_reclaim(context, options);
  Request request;
  if (step == session::Step::ExchangeId)
    request.add(v4::OP_EXCHANGE_ID, &Op::opexchange_id, session_.exchange_id());
  else
    request.add(v4::OP_CREATE_SESSION, &Op::opcreate_session, session_.create_session());
  Outcome<Attempt> came = co_await alone(context, request, machine_call(context, options));
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

Task<Outcome<Ok>> SessionClient::recover(OperationContext context, const ProtocolOptions& options) {
  JukeboxRetry retry(channel().loop(), options, session_.lease());
  begin_to_wait(context);
  while (!ready()) {
    if (recovering_) {
      const Outcome<Ok> woken = co_await wait_in(recovered_, context, options);
      if (!woken) co_return woken;
      continue;
    }
    Outcome<Attempt> came = Attempt{};
    {
      const InProgress in_progress(recovering_, recovered_);
      if (minor_ == 0)
        came = co_await take_step_v40(context, options);
      else
        came = co_await take_step(context, options);
    }
    if (!came) co_return Failure{came.error()};
    minor_refused_ = came->status == v4::NFS4ERR_MINOR_VERS_MISMATCH;
    const Outcome<Ok> going = co_await go_on(came->fate, came->status, context, retry);
    if (!going) co_return going;
    begin_to_wait(context);
  }
  put_off_since_.reset();
  waiting_.wake_all();
  co_return Ok{};
}

}  // namespace stag::nfs::client::nfs4
