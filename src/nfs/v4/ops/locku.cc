// LOCKU (RFC 8881 18.12). A client that was told NFS4ERR_DELAY would ask for ever, and its program
// get to none of its other locks.
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

v4::LOCKU4res locku(Compound& compound, v4::LOCKU4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) return {v4::NFS4ERR_INVAL, {}};
  const auto meant = compound.meant(args.lock_stateid);
  if (!meant) return {meant.error(), {}};
  const state::StateidResult unlocked = with_room(compound, state::Shortage::States, [&] {
    return compound.shared().files.unlock(compound.object().key(), to_stateid(*meant), *range,
                                          *compound.life());
  });
  note_limit(compound, Reason::Nfs4StatesTooMany, unlocked.limit);
  if (unlocked.status != state::Status::Ok) return {to_nfsstat4(unlocked.status), {}};
  v4::LOCKU4res results;
  results.lock_stateid() = to_stateid4(unlocked.stateid);
  compound.set_current_stateid(results.lock_stateid());
  return results;
}

}  // namespace stag::nfs::nfs4
