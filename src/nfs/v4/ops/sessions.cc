// DESTROY_SESSION, DESTROY_CLIENTID and RECLAIM_COMPLETE (RFC 8881 18.37, 18.50, 18.51).
#include "nfs/v4/compound/machine_credential.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/connection.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

v4::DESTROY_SESSION4res destroy_session(Compound& compound, v4::DESTROY_SESSION4args& args) {
  const v4::nfsstat4 status = check_machine(compound, args.dsa_sessionid);
  if (status != v4::NFS4_OK) return {status};
  return {to_nfsstat4(
      compound.shared().clients.destroy_session(args.dsa_sessionid, connection_of(compound)))};
}

Task<v4::DESTROY_CLIENTID4res> destroy_clientid(Compound& compound,
                                                v4::DESTROY_CLIENTID4args& args) {
  const v4::nfsstat4 wrong = check_machine(compound, args.dca_clientid);
  if (wrong != v4::NFS4_OK) co_return v4::DESTROY_CLIENTID4res{wrong};
  const rpc::CallContext& call = compound.admission().call();
  const state::Status status =
      co_await compound.shared().destroy(args.dca_clientid, call.loop(), &call.origin());
  co_return v4::DESTROY_CLIENTID4res{to_nfsstat4(status)};
}

// A client that has reclaimed something was recorded before, and all others have nothing yet that a
// restart would take from them (8.4.2.1). The server records again a client that was not done when
// the grace period ended; should that fail, its next open tries again.
Task<v4::RECLAIM_COMPLETE4res> reclaim_complete(Compound& compound,
                                                v4::RECLAIM_COMPLETE4args& args) {
  // 18.51.3: of one file system only when that one was migrated here, which none is.
  if (args.rca_one_fs)
    co_return v4::RECLAIM_COMPLETE4res{compound.has_current() ? v4::NFS4_OK
                                                              : v4::NFS4ERR_NOFILEHANDLE};
  compound.shared().admit(*compound.life());
  const state::Status status = compound.shared().clients.reclaim_complete(*compound.life());
  if (status == state::Status::Ok) compound.shared().completed(*compound.life(), compound.now());
  if (compound.life()->cut_off.load()) {
    SharedState::not_cut_off(*compound.life());
    if (compound.life()->states.load() != 0) co_await compound.record_client();
  }
  co_return v4::RECLAIM_COMPLETE4res{to_nfsstat4(status)};
}

}  // namespace stag::nfs::nfs4
