// CLOSE and OPEN_DOWNGRADE (RFC 8881 18.2, 18.18).
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

v4::CLOSE4res close(Compound& compound, v4::CLOSE4args& args) {
  const auto meant = compound.meant_with_seqid(args.open_stateid);
  if (!meant) return {meant.error(), {}};
  const state::StateidResult closed =
      compound.shared().files.close(compound.object().key(), to_stateid(*meant), *compound.life());
  if (closed.status != state::Status::Ok) return {to_nfsstat4(closed.status), {}};
  v4::CLOSE4res results;
  results.open_stateid() = to_stateid4(closed.stateid);
  compound.set_current_stateid(results.open_stateid());
  return results;
}

v4::OPEN_DOWNGRADE4res open_downgrade(Compound& compound, v4::OPEN_DOWNGRADE4args& args) {
  const auto meant = compound.meant_with_seqid(args.open_stateid);
  if (!meant) return {meant.error(), {}};
  const state::StateidResult downgraded = compound.shared().files.open_downgrade(
      compound.object().key(), to_stateid(*meant), args.share_access & state::kShareBoth,
      args.share_deny, *compound.life());
  if (downgraded.status != state::Status::Ok) return {to_nfsstat4(downgraded.status), {}};
  v4::OPEN_DOWNGRADE4res results;
  results.resok4().open_stateid = to_stateid4(downgraded.stateid);
  compound.set_current_stateid(results.resok4().open_stateid);
  return results;
}

}  // namespace stag::nfs::nfs4
