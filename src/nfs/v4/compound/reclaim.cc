#include "nfs/v4/compound/reclaim.h"

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

Reclaim::Reclaim(const Compound& compound, bool claims) : compound_(compound) {
  if (!claims || compound.life() == nullptr) return;
  state::Life& life = *compound.life();
  if (compound.shared().admit(life) && !life.cut_off.load())
    claim_.emplace(*compound.shared().options.grace, compound.now());
}

v4::nfsstat4 Reclaim::ended(v4::nfsstat4 status) const {
  if (claim_ && status == v4::NFS4ERR_DELAY)
    compound_.shared().options.grace->held_up(compound_.now());
  return status;
}

}  // namespace stag::nfs::nfs4
