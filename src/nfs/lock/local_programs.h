// LocalPrograms: what NLM has locked, kept from programs of this host, and theirs seen by NLM
// (nfs/export/local_locks.h).
// Thread: any. A method marked "with the mutex" is called with the LockManager's mutex held.
#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "nfs/export/local_locks.h"
#include "nfs/lock/lock_table.h"

namespace stag::nfs::lock {

class LocalPrograms {
 public:
  // All arguments outlive it.
  LocalPrograms(LocalLockTable& local, std::mutex& mutex, const LockTable& table);
  LocalPrograms(const LocalPrograms&) = delete;
  ~LocalPrograms();

  // With the mutex: whether a program's lock conflicts with a request that nothing else is against.
  // Until the Holds are gone programs are kept out where none does.
  bool conflicts(const LockRequest& request);
  // With the mutex: the Holds since the last call, which are destroyed without it.
  std::vector<LocalLockTable::Hold> take_holds() { return std::exchange(holds_, {}); }
  // With the mutex: whether a program's lock was in the way since the last call.
  bool take_met() { return std::exchange(met_, false); }
  // The lock of a program, as NLM describes it.
  std::optional<Held> holder(const LockRequest& request) const;
  // Without the mutex: NLM holds less of this file, or (null) of any.
  void freed(const FileKey* file, const Range& range) { local_.freed(file, range); }

 private:
  LocalLockTable& local_;
  const LocalLockTable::SourceId source_;
  std::vector<LocalLockTable::Hold> holds_;
  bool met_ = false;
};

}  // namespace stag::nfs::lock
