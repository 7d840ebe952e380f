// How a client ID of version 4.0 is made, and what is claimed from a server that has lost it (RFC
// 7530 sections 9.1.1, 9.6.2).
#include "nfs/client/v4/claims.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/session_client.h"
#include "nfs/client/v4/status.h"

namespace stag::nfs::client::nfs4 {

using session::ClientV40;
using Of = session::ClientV40::Of;
using Claim = session::Opens::Claim;

bool SessionClient::ready_v40() const {
  return client_v40_.step() == ClientV40::Step::Ready &&
         claimed_from_ == client_v40_.incarnation() && opens_.settled();
}

Task<Outcome<SessionClient::Attempt>> SessionClient::take_step_v40(OperationContext context,
                                                                   const ProtocolOptions& options) {
  if (client_v40_.step() == ClientV40::Step::Ready) {
    if (claimed_from_ != client_v40_.incarnation()) begin_claiming(client_v40_.incarnation());
    const Which which = opens_.reclaimed() ? Which::Reopens : Which::Reclaims;
    co_return co_await take_claims(which, context, options);
  }
  // RFC 7530 9.1.1: always the same principal, whoever the caller is.
  ProtocolOptions own = options;
  own.credentials = own_.credentials;
  if (client_v40_.step() == ClientV40::Step::Confirm)
    co_return co_await confirm_client_v40(context, own);
  Request request;
  request.add(v4::OP_SETCLIENTID, &Op::opsetclientid, client_v40_.set_clientid());
  Outcome<Attempt> came = co_await alone(context, request, call_options(context, own));
  if (came && came->fate == Fate::Go)
    came->fate = client_v40_.on_set_clientid(request.result(kAlone)->opsetclientid());
  co_return came;
}

Task<Outcome<SessionClient::Attempt>> SessionClient::confirm_client_v40(
    OperationContext context, const ProtocolOptions& options) {
  Request request;
  const std::size_t at =
      request.add(v4::OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm, client_v40_.confirm());
  Values lease;
  ask_for_lease(request, lease);
  Outcome<Attempt> came = co_await send_v40(context, request, options);
  if (!came) co_return came;
  if (OpResult* const confirmed = request.result(at))
    came->status = confirmed->opsetclientid_confirm().status;
  came->fate = client_v40_.on_confirm(came->status);
  note_lease(lease);
  co_return came;
}

// nullopt: by which name the file could be opened is not known.
std::optional<Request> SessionClient::request_of_v40(const Claim& claim) {
  const v4::nfs_fh4& file = *opens_.file(claim.open);
  Request request;
  if (claim.kind == Claim::Kind::ReclaimLock) {
    request.put_handle(file);
    const std::size_t at = request.add(v4::OP_LOCK, &Op::oplock, lock_of(claim));
    const Request::ByOpen by{at, claim.open, claim.owner, claim.lock};
    fill_in_lock(request.operation(at).oplock(), by);
    request.set_by(by);
    return request;
  }
  v4::OPEN4args args;
  args.share_access = opens_.access(claim.open);
  if (claim.kind == Claim::Kind::Reclaim) {
    request.put_handle(file);
    args.claim.claim = v4::CLAIM_PREVIOUS;
    args.claim.delegate_type() = v4::OPEN_DELEGATE_NONE;
  } else {
    const auto place = places_.find(*Handle::from(file.bytes()));
    if (!place) return std::nullopt;
    request.put_handle(place->directory);
    args.claim.claim = v4::CLAIM_NULL;
    args.claim.file() = place->name;
  }
  request.add_open(std::move(args), claim.open);
  request.add(v4::OP_GETFH);
  return request;
}

// By its name another file was opened.
Task<void> SessionClient::close_wrong(OperationContext context, session::Opens::Id open,
                                      v4::nfs_fh4 file, v4::stateid4 stateid,
                                      const ProtocolOptions& options) {
  Request request;
  request.put_handle(file);
  const std::size_t at = request.add(v4::OP_CLOSE, &Op::opclose, {0, stateid});
  request.set_by({at, open, {}, {}});
  const OwnersV40::Pair owners{owners_.of_open(open), nullptr};
  static_cast<void>(co_await send_numbered(context, request, owners, options, Of::Claim));
}

// One claim; refused, it is marked so, and recovery goes on with the next one. Operations of the
// same owners that are still in progress are of the time before the restart, and do not count.
Task<Outcome<SessionClient::Attempt>> SessionClient::take_claim_v40(
    OperationContext context, Claim claim, const ProtocolOptions& options) {
  std::optional<Request> request = request_of_v40(claim);
  if (!request) {
    opens_.on_refused(claim);
    co_return Attempt{Fate::Go, v4::NFS4_OK};
  }
  // RFC 7530 9.1.7: without a restart an operation of the old owner may still be in progress. Where
  // none is, the same owner's OPEN takes the place of what the server may still keep of the old
  // one.
  if (claim.kind == Claim::Kind::Reopen && owners_.of_open(claim.open)->busy)
    owners_.renew(claim.open);
  OwnersV40::Pair owners{owners_.of_open(claim.open), nullptr};
  if (claim.kind == Claim::Kind::ReclaimLock) owners.locks = owners_.of_locks(claim.owner);
  const ProtocolOptions of_holder = options_of(claim, options);
  Outcome<Attempt> came = co_await send_numbered(context, *request, owners, of_holder, Of::Claim);
  if (!came) co_return claim_failed(claim, came.error(), of_holder, options);
  if (came->fate != Fate::Go) co_return came;
  if (asks_to_wait(came->status)) {
    came->fate = Fate::Later;
    co_return came;
  }
  std::optional<v4::stateid4> stateid;
  if (came->status == v4::NFS4_OK) {
    Reply reply(*request);
    stateid = stateid_of(claim.kind, reply);
    auto* opened = opened_by(claim.kind, reply);
    auto* found = opened == nullptr ? nullptr : reply.get(3, &OpResult::opgetfh);
    const auto handle =
        found == nullptr ? std::nullopt : Handle::from(found->resok4().object.bytes());
    if (handle) decline_delegation(*handle, opened->resok4().delegation);
    const v4::nfs_fh4* file = opens_.file(claim.open);
    const bool other = claim.kind == Claim::Kind::Reopen && found != nullptr && file != nullptr &&
                       found->resok4().object != *file;
    if (other && stateid)
      co_await close_wrong(context, claim.open, found->resok4().object, *stateid, of_holder);
    if (other) stateid.reset();
  }
  if (stateid)
    opens_.on_claimed(claim, *stateid);
  else
    opens_.on_refused(claim);
  co_return Attempt{Fate::Go, v4::NFS4_OK};
}

}  // namespace stag::nfs::client::nfs4
