#include "nfs/v4/held_up_claims.h"

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/ops/lock.h"

namespace stag::nfs::nfs4 {

namespace {

// The client that claims something by this operation of version 4.0, if it does.
void identify_claimant(Compound& compound, const OperationList::Entry& entry) {
  if (entry.arguments == nullptr) return;
  if (entry.number == v4::OP_OPEN) {
    const auto& args = *static_cast<const v4::OPEN4args*>(entry.arguments);
    if (args.claim.claim == v4::CLAIM_PREVIOUS)
      static_cast<void>(compound.identify(args.owner.clientid));
  } else if (entry.number == v4::OP_LOCK) {
    const auto& args = *static_cast<const v4::LOCK4args*>(entry.arguments);
    if (args.reclaim) static_cast<void>(compound.identify(stateid_of(args.locker)));
  }
}

}  // namespace

void note_held_up(Compound& compound, const OperationList::Entries& entries) {
  const SharedState& shared = compound.shared();
  if (!shared.options.grace->active()) return;
  if (compound.minor() == 0)
    for (const OperationList::Entry& entry : entries) identify_claimant(compound, entry);
  const state::LifePtr& life = compound.life();
  if (life != nullptr && shared.admit(*life) && !life->cut_off.load())
    shared.options.grace->held_up(compound.now());
}

}  // namespace stag::nfs::nfs4
