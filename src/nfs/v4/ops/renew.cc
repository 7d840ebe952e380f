// RENEW (RFC 7530 16.28).
#include "nfs/v4/ops/callback_path.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// 16.28.5: the principal that has confirmed the client ID, or one that has a file open. What is to
// be said of a client ID that is unknown Compound::identify() knows.
bool may_renew(const Compound& compound, v4::clientid4 clientid) {
  const SharedState& shared = compound.shared();
  const auto identity = shared.clients.identity(clientid);
  return !identity || identity->principal == compound.principal() ||
         shared.owners.has_opened(clientid, compound.principal_number());
}

// RFC 7530 has no RECLAIM_COMPLETE: who goes on after the grace period is taken to have reclaimed
// what it wanted. Nothing is written of who has a record; what fails the next RENEW tries again.
Task<void> record_again(Compound& compound) {
  state::Life& life = *compound.life();
  const SharedState& shared = compound.shared();
  if (shared.options.grace->active() || life.states.load() == 0) co_return;
  SharedState::not_cut_off(life);
  co_await compound.record_client();
}

}  // namespace

Task<v4::RENEW4res> renew(Compound& compound, v4::RENEW4args& args) {
  compound.shared().expire(compound.now());
  if (!may_renew(compound, args.clientid)) co_return v4::RENEW4res{v4::NFS4ERR_ACCESS};
  const v4::nfsstat4 status = compound.identify(args.clientid);
  if (status != v4::NFS4_OK) co_return v4::RENEW4res{status};
  co_await record_again(compound);
  if (compound.life()->delegations.load(std::memory_order_relaxed) == 0)
    co_return v4::RENEW4res{status};
  co_return v4::RENEW4res{check_callback_path(compound)};
}

}  // namespace stag::nfs::nfs4
