// LOCK, LOCKT and LOCKU (RFC 8881 18.10 to 18.12). Nobody waits: a client that asks for a blocking
// lock asks again.
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

bool is_exclusive(v4::nfs_lock_type4 type) {
  return type == v4::WRITE_LT || type == v4::WRITEW_LT;
}

v4::LOCK4denied to_denied(const state::ConflictingLock& conflict) {
  v4::LOCK4denied denied;
  denied.offset = conflict.range.first;
  denied.length = conflict.range.last == state::Range::kEnd
                      ? state::Range::kEnd
                      : conflict.range.last - conflict.range.first + 1;
  denied.locktype = conflict.exclusive ? v4::WRITE_LT : v4::READ_LT;
  denied.owner.clientid = conflict.clientid;
  denied.owner.owner = Rope::copy_of(bytes_of(conflict.lock_owner));
  return denied;
}

// By the arguments; `owner` outlives it. BAD_STATEID as of meant().
Result<state::LockArgs, v4::nfsstat4> to_lock_args(const Compound& compound,
                                                   const v4::LOCK4args& args,
                                                   const state::Range& range, Buffer& owner) {
  state::LockArgs to;
  to.file = key_of(compound.object());
  to.range = range;
  to.exclusive = is_exclusive(args.locktype);
  to.reclaim = args.reclaim;
  to.new_lock_owner = args.locker.new_lock_owner;
  if (to.new_lock_owner) owner = args.locker.open_owner().lock_owner.owner.flatten();
  to.lock_owner = owner.bytes();
  const auto meant = compound.meant(to.new_lock_owner ? args.locker.open_owner().open_stateid
                                                      : args.locker.lock_owner().lock_stateid);
  if (!meant) return Failure{meant.error()};
  to.stateid = to_stateid(*meant);
  return to;
}

}  // namespace

v4::LOCK4res lock(Compound& compound, v4::LOCK4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) return {v4::NFS4ERR_INVAL, {}};
  Buffer owner;
  const auto wanted = to_lock_args(compound, args, *range, owner);
  if (!wanted) return {wanted.error(), {}};
  const state::LockResult locked =
      settled(compound, [&] { return compound.shared().files.lock(*wanted, compound.life()); });
  v4::LOCK4res results;
  results.status = status_of(locked.verdict);
  if (locked.conflict) results.denied() = to_denied(*locked.conflict);
  if (!locked.verdict.granted()) return results;
  results.resok4().lock_stateid = to_stateid4(locked.stateid);
  compound.set_current_stateid(results.resok4().lock_stateid);
  return results;
}

v4::LOCKT4res lockt(Compound& compound, v4::LOCKT4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) return {v4::NFS4ERR_INVAL, {}};
  const v4::nfsstat4 nobody = compound.identify(args.owner.clientid);
  if (nobody != v4::NFS4_OK) return {nobody, {}};
  const Buffer owner = args.owner.owner.flatten();
  const state::LockResult tested = settled(compound, [&] {
    return compound.shared().files.test_lock(key_of(compound.object()), *range,
                                             is_exclusive(args.locktype), owner.bytes(),
                                             *compound.life());
  });
  v4::LOCKT4res results;
  results.status = status_of(tested.verdict);
  if (tested.conflict) results.denied() = to_denied(*tested.conflict);
  return results;
}

v4::LOCKU4res locku(Compound& compound, v4::LOCKU4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) return {v4::NFS4ERR_INVAL, {}};
  const auto meant = compound.meant(args.lock_stateid);
  if (!meant) return {meant.error(), {}};
  const state::StateidResult unlocked = compound.shared().files.unlock(
      key_of(compound.object()), to_stateid(*meant), *range, *compound.life());
  if (unlocked.status != state::Status::Ok) return {to_nfsstat4(unlocked.status), {}};
  v4::LOCKU4res results;
  results.lock_stateid() = to_stateid4(unlocked.stateid);
  compound.set_current_stateid(results.lock_stateid());
  return results;
}

}  // namespace stag::nfs::nfs4
