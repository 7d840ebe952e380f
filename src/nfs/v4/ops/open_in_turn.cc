// OPEN of version 4.0 (RFC 7530 16.16): as in later versions, but in the turn of its open owner.
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/owner_turn.h"

namespace stag::nfs::nfs4 {

namespace {

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
  const v4::nfsstat4 other = check_version(args);
  if (other != v4::NFS4_OK) co_return v4::OPEN4res{other, {}};
  const bool final = confirmed || args.claim.claim == v4::CLAIM_PREVIOUS;
  const v4::OPEN4res results =
      co_await open_file(compound, args, final ? Delegating::Allowed : Delegating::Forbidden);
  // RFC 7530 16.16.5: the status of a symbolic link is that of all special files.
  if (results.status == v4::NFS4ERR_WRONG_TYPE) co_return v4::OPEN4res{v4::NFS4ERR_SYMLINK, {}};
  co_return results;
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
  turn.finish(results.status, kept(results, opened ? compound.handle_of(compound.current())
                                                   : FileHandles::Sealed{}));
  co_return results;
}

}  // namespace stag::nfs::nfs4
