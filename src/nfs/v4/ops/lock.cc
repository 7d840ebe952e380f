// LOCK (RFC 8881 18.10). The server lets no LOCK wait: a client that asks for a blocking lock asks
// again.
#include "nfs/v4/ops/lock.h"

#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/reclaim.h"
#include "nfs/v4/compound/reclaim_notes.h"
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

bool is_exclusive(v4::nfs_lock_type4 type) {
  return type == v4::WRITE_LT || type == v4::WRITEW_LT;
}

namespace {

// By the arguments; `owner` outlives it. BAD_STATEID as of meant().
Result<state::LockArgs, v4::nfsstat4> to_lock_args(const Compound& compound,
                                                   const v4::LOCK4args& args,
                                                   const state::Range& range, Buffer& owner) {
  state::LockArgs to;
  to.file = compound.object().key();
  to.range = range;
  to.exclusive = is_exclusive(args.locktype);
  to.reclaim = args.reclaim;
  to.new_lock_owner = args.locker.new_lock_owner;
  if (to.new_lock_owner) owner = args.locker.open_owner().lock_owner.owner.flatten();
  to.lock_owner = owner.bytes();
  const auto meant = compound.meant(stateid_of(args.locker));
  if (!meant) return Failure{meant.error()};
  to.stateid = to_stateid(*meant);
  return to;
}

// Local programs are asked before anything is given out, clients before local programs hear of it.
state::LockResult lock_everywhere(Compound& compound, const state::LockArgs& wanted) {
  state::Files& files = compound.shared().files;
  LocalLockTable& local = *compound.shared().server.local_locks;
  if (!local.any()) return files.lock(wanted, compound.life());
  state::LockArgs asked = wanted;
  asked.only_asks = true;
  state::LockResult answer = files.lock(asked, compound.life());
  if (!answer.verdict.granted() || answer.held) return answer;
  auto held = local.hold(wanted.file, wanted.range, wanted.exclusive);
  if (!held) return denied_by(std::move(held.error()), wanted.reclaim);
  if (*held) compound.life()->seen_by_programs.store(true);
  return files.lock(wanted, compound.life());
}

}  // namespace

Task<v4::LOCK4res> lock(Compound& compound, v4::LOCK4args& args) {
  const Reclaim reclaim(compound, args.reclaim);
  const OpenForLocks open = co_await open_for_locks(compound);
  if (open.status != v4::NFS4_OK) co_return v4::LOCK4res{reclaim.ended(open.status), {}};
  v4::LOCK4res results = lock_now(compound, args);
  static_cast<void>(reclaim.ended(results.status));
  if (results.status != v4::NFS4ERR_BAD_STATEID) co_return results;
  // No client has a stateid of an object that is no file: that is why.
  const ExportObject object = compound.object();
  const v4::nfsstat4 wrong = co_await lockable(object);
  if (wrong != v4::NFS4_OK) results.status = wrong;
  co_return results;
}

v4::LOCK4res lock_now(Compound& compound, const v4::LOCK4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) return {v4::NFS4ERR_INVAL, {}};
  Buffer owner;
  const auto wanted = to_lock_args(compound, args, *range, owner);
  if (!wanted) return {wanted.error(), {}};
  const state::LockResult locked = settled(compound, [&] {
    return with_room(compound, state::Shortage::States,
                     [&] { return lock_everywhere(compound, *wanted); });
  });
  note_limit(compound, Reason::Nfs4StatesTooMany, locked.limit);
  note_refused_reclaim(compound, locked, *range);
  v4::LOCK4res results;
  results.status = status_of(locked.verdict);
  if (locked.conflict) results.denied() = to_denied(compound, *locked.conflict);
  if (!locked.verdict.granted()) return results;
  results.resok4().lock_stateid = to_stateid4(locked.stateid);
  compound.set_current_stateid(results.resok4().lock_stateid);
  return results;
}

}  // namespace stag::nfs::nfs4
