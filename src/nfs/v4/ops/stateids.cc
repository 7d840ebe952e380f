#include "nfs/v4/ops/stateids.h"

#include "base/completion.h"
#include "nfs/v4/compound/state_status.h"

namespace stag::nfs::nfs4 {

state::Stateid to_stateid(const v4::stateid4& stateid) {
  return {stateid.seqid, stateid.other};
}

v4::stateid4 to_stateid4(const state::Stateid& stateid) {
  return {stateid.seqid, stateid.other};
}

v4::nfsstat4 status_of(const state::Verdict& verdict) {
  switch (verdict.kind) {
    case state::Verdict::Kind::Granted:
      return v4::NFS4_OK;
    case state::Verdict::Kind::Refused:
      return to_nfsstat4(verdict.status);
    case state::Verdict::Kind::Recall:
    case state::Verdict::Kind::Lapsed:
      break;
  }
  return v4::NFS4ERR_DELAY;
}

namespace {

struct Checked {
  Permitted permitted;
  bool recalled = false;  // for delegations that are being recalled
};

Checked check(Compound& compound, const ExportObject& object, const v4::stateid4& argument,
              state::Touch touch) {
  const auto meant = compound.meant(argument);
  if (!meant) return {Failure{meant.error()}};
  if (const v4::nfsstat4 nobody = compound.identify(*meant); nobody != v4::NFS4_OK)
    return {Failure{nobody}};
  Asked asked = settled(compound, [&] {
    return Asked{
        compound.shared().files.check(object.key(), to_stateid(*meant), *compound.life(), touch)};
  });
  if (asked.verdict.granted()) return {std::move(asked.verdict.change)};
  return {Failure{status_of(asked.verdict)}, asked.verdict.kind == state::Verdict::Kind::Recall};
}

}  // namespace

Permitted check_stateid(Compound& compound, const ExportObject& object,
                        const v4::stateid4& argument, state::Touch touch) {
  return check(compound, object, argument, touch).permitted;
}

// Which of the two comes second finds nobody waiting.
Task<bool> delegation_goes(Compound& compound, state::FileKey file, TimePoint until) {
  Loop& loop = compound.admission().call().loop();
  if (loop.now() >= until) co_return false;
  const auto ended = std::make_shared<Completion<bool>>();
  const auto complete = [ended](bool gone) {
    if (!ended->completed()) ended->complete(gone);
  };
  using Wait = state::Files::Wait;
  const Wait wait = compound.shared().files.wait(
      file, [&loop, complete] { loop.post([complete] { complete(true); }); });
  if (wait != Wait::Begun) co_return wait == Wait::NoDelegation;
  const Timer limit = loop.after(until - loop.now(), [complete] { complete(false); });
  co_return co_await *ended;
}

Task<Permitted> check_stateid_in_time(Compound& compound, ExportObject object, v4::stateid4 stateid,
                                      state::Touch touch) {
  const TimePoint until = compound.now() + kRecallPatience;
  Checked checked = check(compound, object, stateid, touch);
  while (checked.recalled) {
    const bool gone = co_await delegation_goes(compound, object.key(), until);
    if (!gone) break;
    checked = check(compound, object, stateid, touch);
  }
  co_return std::move(checked.permitted);
}

Task<Permitted> check_stateid_patiently(Compound& compound, ExportObject object,
                                        v4::stateid4 stateid, state::Touch touch) {
  Permitted permitted = check_stateid(compound, object, stateid, touch);
  if (!is_delayed(permitted)) co_return permitted;
  co_return co_await check_stateid_in_time(compound, object, stateid, touch);
}

}  // namespace stag::nfs::nfs4
