// CLOSE and OPEN_DOWNGRADE of version 4.0 (RFC 7530 16.2, 16.19): as in later versions, but in the
// turn of their open owner.
#include "nfs/v4/ops/open_owner_turn.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

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
                              const bool gone = closed.status == v4::NFS4_OK ||
                                                closed.status == v4::NFS4ERR_ADMIN_REVOKED;
                              if (gone && owner != nullptr)
                                compound.shared().owners.closed(owner, stateid);
                              return closed;
                            });
  if (results.status != v4::NFS4ERR_BAD_STATEID) return results;
  // 9.1.8: it is gone because this is the retransmission.
  const OwnerTurn before(compound, compound.shared().owners.closed_before(stateid, args.seqid));
  return before.instead(&Results::status);
}

}  // namespace stag::nfs::nfs4
