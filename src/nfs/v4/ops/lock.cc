// LOCK, LOCKT and LOCKU (RFC 8881 18.10 to 18.12). Nobody waits: a client that asks for a blocking
// lock asks again.
#include "nfs/v4/ops/lock.h"

#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/compound/status.h"
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

// RFC 8881 18.11.3: only regular files have byte ranges.
Task<v4::nfsstat4> lockable(const ExportObject& object) {
  const auto attributes = co_await object.store().attributes(object.caller(), object.handle);
  if (!attributes) co_return to_nfsstat4(attributes.error());
  switch (attributes->type) {
    case vfs::FileType::Regular:
      co_return v4::NFS4_OK;
    case vfs::FileType::Directory:
      co_return v4::NFS4ERR_ISDIR;
    case vfs::FileType::Symlink:
      co_return v4::NFS4ERR_SYMLINK;
    default:
      co_return v4::NFS4ERR_WRONG_TYPE;
  }
}

state::LockResult denied_by(state::ConflictingLock conflict, bool reclaim) {
  const state::Status status = reclaim ? state::Status::ReclaimConflict : state::Status::Denied;
  return {state::Verdict::refused(status), {}, std::move(conflict)};
}

// Local programs are asked before anything is given out, clients before local programs hear of it.
state::LockResult lock_everywhere(Compound& compound, const state::LockArgs& wanted) {
  state::Files& files = compound.shared().files;
  LocalLockTable& local = *compound.shared().server.local_locks;
  if (!local.any()) return files.lock(wanted, compound.life());
  state::LockArgs asked = wanted;
  asked.only_asks = true;
  state::LockResult answer = files.lock(asked, compound.life());
  if (!answer.verdict.granted()) return answer;
  auto held = local.hold(wanted.file, wanted.range, wanted.exclusive);
  if (!held) return denied_by(std::move(held.error()), wanted.reclaim);
  return files.lock(wanted, compound.life());
}

state::LockResult test_everywhere(Compound& compound, const v4::LOCKT4args& args,
                                  const state::Range& range) {
  const Buffer owner = args.owner.owner.flatten();
  const state::FileKey file = key_of(compound.object());
  const bool exclusive = is_exclusive(args.locktype);
  state::LockResult tested = settled(compound, [&] {
    return compound.shared().files.test_lock(file, range, exclusive, owner.bytes(),
                                             *compound.life());
  });
  if (!tested.verdict.granted()) return tested;
  auto conflict = compound.shared().server.local_locks->conflict(file, range, exclusive);
  return conflict ? denied_by(*std::move(conflict), false) : std::move(tested);
}

v4::LOCKT4res test(Compound& compound, const v4::LOCKT4args& args, const state::Range& range) {
  const state::LockResult tested = test_everywhere(compound, args, range);
  v4::LOCKT4res results;
  results.status = status_of(tested.verdict);
  if (tested.conflict) results.denied() = to_denied(*tested.conflict);
  return results;
}

}  // namespace

Task<OpenForLocks> open_for_locks(const Compound& compound) {
  const auto* const file = std::get_if<ExportObject>(&compound.current());
  if (file == nullptr) co_return OpenForLocks{};
  const ExportObject object = *file;
  auto opened = co_await compound.shared().server.local_locks->open(key_of(object), object.store(),
                                                                    object.caller());
  if (opened) co_return OpenForLocks{v4::NFS4_OK, *std::move(opened)};
  // What is no file is refused for that.
  const bool no_file =
      opened.error() == vfs::Status::IsDirectory || opened.error() == vfs::Status::Invalid;
  co_return OpenForLocks{no_file ? v4::NFS4_OK : to_nfsstat4(opened.error())};
}

Task<v4::LOCK4res> lock(Compound& compound, v4::LOCK4args& args) {
  const OpenForLocks open = co_await open_for_locks(compound);
  if (open.status != v4::NFS4_OK) co_return v4::LOCK4res{open.status, {}};
  co_return lock_now(compound, args);
}

v4::LOCK4res lock_now(Compound& compound, const v4::LOCK4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) return {v4::NFS4ERR_INVAL, {}};
  Buffer owner;
  const auto wanted = to_lock_args(compound, args, *range, owner);
  if (!wanted) return {wanted.error(), {}};
  const state::LockResult locked =
      settled(compound, [&] { return lock_everywhere(compound, *wanted); });
  v4::LOCK4res results;
  results.status = status_of(locked.verdict);
  if (locked.conflict) results.denied() = to_denied(*locked.conflict);
  if (!locked.verdict.granted()) return results;
  results.resok4().lock_stateid = to_stateid4(locked.stateid);
  compound.set_current_stateid(results.resok4().lock_stateid);
  return results;
}

Task<v4::LOCKT4res> lockt(Compound& compound, v4::LOCKT4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) co_return v4::LOCKT4res{v4::NFS4ERR_INVAL, {}};
  const v4::nfsstat4 nobody = compound.identify(args.owner.clientid);
  if (nobody != v4::NFS4_OK) co_return v4::LOCKT4res{nobody, {}};
  const ExportObject object = compound.object();
  const v4::nfsstat4 refused = co_await lockable(object);
  if (refused != v4::NFS4_OK) co_return v4::LOCKT4res{refused, {}};
  const OpenForLocks open = co_await open_for_locks(compound);
  if (open.status != v4::NFS4_OK) co_return v4::LOCKT4res{open.status, {}};
  co_return test(compound, args, *range);
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
