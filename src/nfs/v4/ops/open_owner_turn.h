// The turn of a stateid's open owner: OPEN_CONFIRM, OPEN_DOWNGRADE and CLOSE of version 4.0.
#pragma once

#include "nfs/v4/ops/owner_turn.h"

namespace stag::nfs::nfs4 {

// Runs `function` in the turn of the open owner of a stateid.
template <class Results, class Function>
Results in_open_turn(Compound& compound, const v4::stateid4& stateid, std::uint32_t seqid,
                     state::OwnerOperation operation, Function function) {
  const v4::nfsstat4 nobody = compound.identify(stateid);
  if (nobody != v4::NFS4_OK) return {nobody, {}};
  const std::string owner = compound.shared().files.owner_of(to_stateid(stateid));
  OwnerTurn turn(compound, {state::OwnerKind::Open, compound.life()->clientid, bytes_of(owner),
                            seqid, operation, false});
  if (!turn.runs()) return turn.instead(&Results::status);
  const Results results =
      on_pseudo_fs(compound) ? Results{v4::NFS4ERR_BAD_STATEID, {}} : function(turn.owner());
  turn.finish(results.status, kept(results));
  return results;
}

}  // namespace stag::nfs::nfs4
