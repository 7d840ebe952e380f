#include "nfs/v4/ops/new_delegation.h"

#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

// Not as the COMPOUND began: where the export went meanwhile, those of its delegations that were
// made before have been recalled.
bool is_served(const Compound& compound, const ExportObject& file) {
  return compound.shared().server.exports.current()->serves(file.key());
}

}  // namespace

Task<bool> keep_from_programs(Compound& compound, const ExportObject& file,
                              state::DelegationType type, const state::Stateid& delegation) {
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  const state::FileKey key = file.key();
  auto lease = co_await file.store().lease(
      file.caller(), file.handle,
      type == state::DelegationType::Read ? vfs::LeaseKind::Read : vfs::LeaseKind::Write,
      callbacks->wanted_locally(key));
  if (!lease && lease.error() == vfs::Status::TooManyObjects)
    note_limit(compound, Reason::Nfs4DelegationsTooMany, compound.life()->clientid,
               "of files that programs of the server are kept from");
  if (!lease) co_return lease.error() == vfs::Status::NotSupported;
  compound.shared().files.keep_lease(delegation, *std::move(lease));
  co_return true;
}

Task<state::StateidResult> delegate(Compound& compound, const ExportObject& file,
                                    state::DelegationType type, bool reclaim) {
  std::uint64_t change = 0;
  if (type == state::DelegationType::Write) {
    // Before its holder can change anything: what is larger then is the holder's.
    const auto attributes = co_await attributes_now(file);
    if (!attributes) co_return state::StateidResult{state::Status::Delay, {}};
    change = attributes->change;
  }
  const state::SlotRef granted_by =
      compound.slot() == nullptr ? state::SlotRef{} : compound.slot()->slot;
  const state::DelegateArgs wanted{file.key(), type, granted_by, change, reclaim, compound.now()};
  const state::StateidResult made = with_room(compound, state::Shortage::Delegations, [&] {
    return compound.shared().files.delegate(wanted, compound.life());
  });
  note_limit(compound, Reason::Nfs4DelegationsTooMany, made.limit);
  if (made.status != state::Status::Ok || is_served(compound, file)) co_return made;
  compound.shared().files.return_delegation(file.key(), made.stateid, *compound.life());
  co_return state::StateidResult{reclaim ? state::Status::ReclaimConflict : state::Status::Denied,
                                 {}};
}

}  // namespace stag::nfs::nfs4
