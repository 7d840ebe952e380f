// OPEN, OPEN_CONFIRM, OPEN_DOWNGRADE and CLOSE of version 4.0 (RFC 7530 16.2, 16.16, 16.18, 16.19):
// as in later versions, but in the turn of their open owner.
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/owner_turn.h"

namespace stag::nfs::nfs4 {

bool advances_seqid(v4::nfsstat4 status) {
  switch (status) {
    case v4::NFS4ERR_STALE_CLIENTID:
    case v4::NFS4ERR_STALE_STATEID:
    case v4::NFS4ERR_BAD_STATEID:
    case v4::NFS4ERR_BAD_SEQID:
    case v4::NFS4ERR_BADXDR:
    case v4::NFS4ERR_RESOURCE:
    case v4::NFS4ERR_NOFILEHANDLE:
    case v4::NFS4ERR_MOVED:
      return false;
    default:
      return true;
  }
}

namespace {

bool on_pseudo_fs(const Compound& compound) {
  return std::holds_alternative<const PseudoFs::Node*>(compound.current());
}

// What only later versions have.
v4::nfsstat4 check_version(const v4::OPEN4args& args) {
  const bool exclusive_4_1 =
      args.openhow.opentype == v4::OPEN4_CREATE && args.openhow.how().mode == v4::EXCLUSIVE4_1;
  const bool known = args.claim.claim <= v4::CLAIM_DELEGATE_PREV && !exclusive_4_1 &&
                     args.share_access <= state::kShareBoth;
  return known ? v4::NFS4_OK : v4::NFS4ERR_INVAL;
}

// RFC 7530 9.1.11: no delegation goes with an open that is still to be confirmed.
Task<v4::OPEN4res> open_here(Compound& compound, v4::OPEN4args& args, bool confirmed) {
  if (on_pseudo_fs(compound)) co_return v4::OPEN4res{v4::NFS4ERR_ROFS, {}};
  const v4::nfsstat4 other = check_version(args);
  if (other != v4::NFS4_OK) co_return v4::OPEN4res{other, {}};
  const bool final = confirmed || args.claim.claim == v4::CLAIM_PREVIOUS;
  co_return co_await open_file(compound, args, final ? Delegating::Allowed : Delegating::Forbidden);
}

// The turn of a stateid's open owner.
state::OwnerArgs open_owner_args(const Compound& compound, const std::string& owner,
                                 std::uint32_t seqid, state::OwnerOperation operation) {
  return {
      state::OwnerKind::Open, compound.life()->clientid, bytes_of(owner), seqid, operation, false};
}

// Runs `function` in the turn of the open owner of a stateid.
template <class Results, class Function>
Results in_open_turn(Compound& compound, const v4::stateid4& stateid, std::uint32_t seqid,
                     state::OwnerOperation operation, Function function) {
  const v4::nfsstat4 nobody = compound.identify(stateid);
  if (nobody != v4::NFS4_OK) return {nobody, {}};
  const std::string owner = compound.shared().files.owner_of(to_stateid(stateid));
  OwnerTurn turn(compound, open_owner_args(compound, owner, seqid, operation));
  if (!turn.runs()) return turn.instead(&Results::status);
  const Results results =
      on_pseudo_fs(compound) ? Results{v4::NFS4ERR_BAD_STATEID, {}} : function(turn.owner());
  turn.finish(results.status, kept(results));
  return results;
}

}  // namespace

Task<v4::OPEN4res> open_in_turn(Compound& compound, v4::OPEN4args& args) {
  const v4::nfsstat4 nobody = compound.identify(args.owner.clientid);
  if (nobody != v4::NFS4_OK) co_return v4::OPEN4res{nobody, {}};
  compound.shared().expire(compound.now());
  const Buffer name = args.owner.owner.flatten();
  OwnerTurn turn(compound, {state::OwnerKind::Open, args.owner.clientid, name.bytes(), args.seqid,
                            state::OwnerOperation::Open, true});
  if (!turn.runs()) co_return turn.instead(&v4::OPEN4res::status);
  v4::OPEN4res results = co_await open_here(compound, args, turn.confirmed());
  const bool opened = results.status == v4::NFS4_OK;
  if (opened && args.claim.claim == v4::CLAIM_PREVIOUS) {
    compound.shared().owners.confirm(turn.owner());
  } else if (opened && !turn.confirmed()) {
    results.resok4().rflags |= v4::OPEN4_RESULT_CONFIRM;
    compound.shared().owners.opened(turn.owner(), to_stateid(results.resok4().stateid));
  }
  turn.finish(results.status, kept(results, opened ? compound.current() : Object{}));
  co_return results;
}

v4::OPEN_CONFIRM4res open_confirm(Compound& compound, v4::OPEN_CONFIRM4args& args) {
  using Results = v4::OPEN_CONFIRM4res;
  return in_open_turn<Results>(
      compound, args.open_stateid, args.seqid, state::OwnerOperation::OpenConfirm,
      [&](const state::OwnerRef& owner) -> Results {
        const state::StateidResult confirmed = compound.shared().files.open_confirm(
            key_of(compound.object()), to_stateid(args.open_stateid), *compound.life());
        if (confirmed.status != state::Status::Ok) return {to_nfsstat4(confirmed.status), {}};
        if (owner != nullptr) compound.shared().owners.confirm(owner);
        Results results;
        results.resok4().open_stateid = to_stateid4(confirmed.stateid);
        return results;
      });
}

v4::OPEN_DOWNGRADE4res open_downgrade_in_turn(Compound& compound, v4::OPEN_DOWNGRADE4args& args) {
  return in_open_turn<v4::OPEN_DOWNGRADE4res>(
      compound, args.open_stateid, args.seqid, state::OwnerOperation::OpenDowngrade,
      [&](const state::OwnerRef&) { return open_downgrade(compound, args); });
}

v4::CLOSE4res close_in_turn(Compound& compound, v4::CLOSE4args& args) {
  using Results = v4::CLOSE4res;
  const state::Stateid stateid = to_stateid(args.open_stateid);
  const Results results =
      in_open_turn<Results>(compound, args.open_stateid, args.seqid, state::OwnerOperation::Close,
                            [&](const state::OwnerRef& owner) {
                              const Results closed = close(compound, args);
                              if (closed.status == v4::NFS4_OK && owner != nullptr)
                                compound.shared().owners.closed(owner, stateid);
                              return closed;
                            });
  if (results.status != v4::NFS4ERR_BAD_STATEID) return results;
  // 9.1.8: it is gone because this is the retransmission.
  const OwnerTurn before(compound, {}, compound.shared().owners.closed_before(stateid, args.seqid));
  return before.instead(&Results::status);
}

}  // namespace stag::nfs::nfs4
