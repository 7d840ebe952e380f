#include "nfs/v4/ops/open_share.h"

#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

std::optional<state::ReservedStates> reserve_open(Compound& compound, Bytes open_owner) {
  state::ReserveResult result = with_room(compound, state::Shortage::States, [&] {
    return compound.shared().files.reserve_open(open_owner, compound.life());
  });
  note_limit(compound, Reason::Nfs4StatesTooMany, result.limit);
  if (result.limit != state::Limit::None) return std::nullopt;
  return std::move(result.states);
}

Task<state::OpenResult> reserve_share(Compound& compound, state::OpenArgs wanted) {
  state::Files& files = compound.shared().files;
  const TimePoint until = compound.now() + kRecallPatience;
  const auto ask = [&] {
    return with_room(compound, state::Shortage::States,
                     [&] { return files.open(wanted, compound.life()); });
  };
  state::OpenResult opened = co_await settled_in_time(compound, wanted.file, ask);
  if (!opened.changing) co_return opened;
  const state::StoppedChanges stopped = files.stop_changes(wanted.file);
  wanted.stopped = true;
  co_await told_in_time(compound, until, [&](UniqueFunction<void()> done) {
    return files.wait_for_changes(wanted.file, std::move(done));
  });
  // In time or not: with nobody waiting any more.
  co_return settled(compound, ask);
}

}  // namespace stag::nfs::nfs4
