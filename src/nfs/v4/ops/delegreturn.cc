// DELEGRETURN (RFC 8881 18.6).
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

v4::DELEGRETURN4res delegreturn(Compound& compound, v4::DELEGRETURN4args& args) {
  const v4::nfsstat4 nobody = compound.identify(args.deleg_stateid);
  if (nobody != v4::NFS4_OK) return {nobody};
  const auto meant = compound.meant(args.deleg_stateid);
  if (!meant) return {meant.error()};
  return {to_nfsstat4(compound.shared().files.return_delegation(
      compound.object().key(), to_stateid(*meant), *compound.life()))};
}

}  // namespace stag::nfs::nfs4
