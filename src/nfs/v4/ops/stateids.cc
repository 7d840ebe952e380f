#include "nfs/v4/ops/stateids.h"

#include "base/first_answer.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/compound/status.h"

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

Permitted check_stateid(Compound& compound, const ExportObject& object,
                        const v4::stateid4& argument, state::Touch touch) {
  const auto meant = compound.meant(argument);
  if (!meant) return Failure{meant.error()};
  if (const v4::nfsstat4 nobody = compound.identify(*meant); nobody != v4::NFS4_OK)
    return Failure{nobody};
  state::Permit permit =
      compound.shared().files.check(object.key(), to_stateid(*meant), *compound.life(), touch);
  if (!permit.granted()) return Failure{status_of(permit)};
  return std::move(permit.change);
}

Task<bool> told_in_time(Compound& compound, TimePoint until, BeginWait begin) {
  Loop& loop = compound.admission().call().loop();
  if (loop.now() >= until) co_return false;
  FirstAnswer<bool> ended(loop);
  const state::Waiting waiting = begin([tell = ended.from_anywhere()] { tell(true); });
  if (waiting.how != state::Wait::Begun) co_return waiting.how == state::Wait::NoNeed;
  co_return co_await ended.within(until - loop.now(), false);
}

Task<bool> delegation_goes(Compound& compound, state::FileKey file, TimePoint until) {
  return told_in_time(compound, until, [&files = compound.shared().files, file](auto done) {
    return files.wait(file, std::move(done));
  });
}

Task<Permitted> permitted_in_time(Compound& compound, ExportObject object, Intent intent,
                                  UniqueFunction<state::Permit()> ask) {
  if (intent.does_nothing()) co_return state::FileChange();
  if (const auto refused = co_await refusal_of(object, intent))
    co_return Failure{to_nfsstat4(*refused)};
  const state::FileKey file = object.key();
  Asked asked = co_await settled_in_time(compound, file, [&] {
    Asked once{ask()};
    if (once.verdict.kind == state::Verdict::Kind::Recall)
      compound.shared().files.recall(file, intent.touch, compound.life().get());
    return once;
  });
  if (!asked.verdict.granted()) co_return Failure{status_of(asked.verdict)};
  co_return std::move(asked.verdict.change);
}

Task<Permitted> check_stateid_in_time(Compound& compound, ExportObject object, v4::stateid4 stateid,
                                      state::Touch touch) {
  const auto meant = compound.meant(stateid);
  if (!meant) co_return Failure{meant.error()};
  const Intent intent{.touch = touch};
  co_return co_await permitted_in_time(compound, object, intent, [&] {
    return compound.shared().files.check(object.key(), to_stateid(*meant), *compound.life(), touch);
  });
}

Task<Permitted> check_stateid_patiently(Compound& compound, ExportObject object,
                                        v4::stateid4 stateid, state::Touch touch) {
  Permitted permitted = check_stateid(compound, object, stateid, touch);
  if (!is_delayed(permitted)) co_return permitted;
  co_return co_await check_stateid_in_time(compound, object, stateid, touch);
}

}  // namespace stag::nfs::nfs4
