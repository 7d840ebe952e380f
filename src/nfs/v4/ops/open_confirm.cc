// OPEN_CONFIRM (RFC 7530 16.18).
#include "nfs/v4/ops/open_owner_turn.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

v4::OPEN_CONFIRM4res open_confirm(Compound& compound, v4::OPEN_CONFIRM4args& args) {
  using Results = v4::OPEN_CONFIRM4res;
  return in_open_turn<Results>(
      compound, args.open_stateid, args.seqid, state::OwnerOperation::OpenConfirm,
      [&](const state::OwnerRef& owner) -> Results {
        const state::StateidResult confirmed = compound.shared().files.open_confirm(
            compound.object().key(), to_stateid(args.open_stateid), *compound.life());
        if (confirmed.status != state::Status::Ok) return {to_nfsstat4(confirmed.status), {}};
        if (owner != nullptr) compound.shared().owners.confirm(owner);
        Results results;
        results.resok4().open_stateid = to_stateid4(confirmed.stateid);
        return results;
      });
}

}  // namespace stag::nfs::nfs4
