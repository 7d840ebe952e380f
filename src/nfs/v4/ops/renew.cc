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

}  // namespace

v4::RENEW4res renew(Compound& compound, v4::RENEW4args& args) {
  compound.shared().expire(compound.now());
  if (!may_renew(compound, args.clientid)) return {v4::NFS4ERR_ACCESS};
  const v4::nfsstat4 status = compound.identify(args.clientid);
  if (status != v4::NFS4_OK || compound.life()->delegations.load(std::memory_order_relaxed) == 0)
    return {status};
  return {check_callback_path(compound)};
}

}  // namespace stag::nfs::nfs4
