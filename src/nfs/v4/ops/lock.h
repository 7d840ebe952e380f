// LOCK, for both ways in which its owners are numbered.
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Has the current file open for as long as a lock of it is asked for, so that programs of this
// machine are asked, too; the status is NFS4_OK or why that cannot be.
struct OpenForLocks {
  v4::nfsstat4 status = v4::NFS4_OK;
  LocalLockTable::Pin pin{};
};
Task<OpenForLocks> open_for_locks(const Compound& compound);

// RFC 8881 18.10.3, 18.11.3: only regular files have byte ranges. NFS4_OK, or what else it is.
Task<v4::nfsstat4> lockable(const ExportObject& object);

// While it is open.
v4::LOCK4res lock_now(Compound& compound, const v4::LOCK4args& args);

// The stateid that a LOCK comes with: of its open, or of its lock owner.
inline const v4::stateid4& stateid_of(const v4::locker4& locker) {
  return locker.new_lock_owner ? locker.open_owner().open_stateid
                               : locker.lock_owner().lock_stateid;
}

// For LOCK and LOCKT.
bool is_exclusive(v4::nfs_lock_type4 type);
v4::LOCK4denied to_denied(const Compound& compound, const state::ConflictingLock& conflict);
state::LockResult denied_by(state::ConflictingLock conflict, bool reclaim);

}  // namespace stag::nfs::nfs4
