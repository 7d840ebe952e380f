// LOCKT (RFC 8881 18.11).
#include "nfs/export/permission.h"
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/lock.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

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

namespace {

// As OPEN has it, which LOCK needs: a caller who could not have the file open is told nothing of
// its locks, and no holder makes way for that caller (RFC 8881 15.2).
Task<v4::nfsstat4> may_test(const ExportObject& object) {
  auto refused = co_await refusal_of(object, kToRead);
  if (refused) refused = co_await refusal_of(object, kToWrite);
  co_return refused ? to_nfsstat4(*refused) : v4::NFS4_OK;
}

state::LockResult test_everywhere(Compound& compound, const v4::LOCKT4args& args,
                                  const state::Range& range) {
  const Buffer owner = args.owner.owner.flatten();
  const state::FileKey file = compound.object().key();
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
  if (tested.conflict) results.denied() = to_denied(compound, *tested.conflict);
  return results;
}

}  // namespace

Task<v4::LOCKT4res> lockt(Compound& compound, v4::LOCKT4args& args) {
  const auto range = state::byte_range(args.offset, args.length);
  if (!range) co_return v4::LOCKT4res{v4::NFS4ERR_INVAL, {}};
  const v4::nfsstat4 nobody = compound.identify(args.owner.clientid);
  if (nobody != v4::NFS4_OK) co_return v4::LOCKT4res{nobody, {}};
  const ExportObject object = compound.object();
  v4::nfsstat4 refused = co_await lockable(object);
  if (refused == v4::NFS4_OK) refused = co_await may_test(object);
  if (refused != v4::NFS4_OK) co_return v4::LOCKT4res{refused, {}};
  const OpenForLocks open = co_await open_for_locks(compound);
  if (open.status != v4::NFS4_OK) co_return v4::LOCKT4res{open.status, {}};
  co_return test(compound, args, *range);
}

}  // namespace stag::nfs::nfs4
