// What is locked by other means than NFSv4 (NLM), as Files asks for it: two tables, each with its
// own rules for waiting and for who an owner is, that give nothing away without asking the other.
//
// The other table has one mutex, which is taken before a shard of Files, never after it. It sets
// any() before it asks Files, and Files looks at any() with the shard locked: where both sides add
// something at the same time, at least one of them sees the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nfs/state/range.h"
#include "nfs/state/types.h"

namespace stag::nfs::state {

// LOCK4denied
struct ConflictingLock {
  Range range;
  bool exclusive = false;
  ClientId clientid = 0;  // 0: not one of version 4
  std::string lock_owner;
};

class OutsideLocks {
 public:
  virtual ~OutsideLocks() = default;
  // Whether it holds anything, or is about to; and whether a request waits there.
  virtual bool any() const = 0;
  virtual bool waiting() const = 0;
  // Its mutex, which the next three are called with.
  virtual void lock() = 0;
  virtual void unlock() = 0;
  virtual std::optional<ConflictingLock> conflict(const FileKey& file, const Range& range,
                                                  bool exclusive) const = 0;
  virtual bool share_conflict(const FileKey& file, std::uint32_t access,
                              std::uint32_t deny) const = 0;
  // Whether it keeps anything of this file, or a request waits for that. In constant time.
  virtual bool concerns(const FileKey& file) const = 0;
  // Version 4 holds less: of one file, or (null) of any. Without any lock.
  virtual void freed(const FileKey* file) = 0;
};

// Keeps others (local programs) from what is locked here, as long as it is locked.
class RangeMirror {
 public:
  virtual ~RangeMirror() = default;
  // Less is locked in this range of a file, or (null) of any. Without any lock.
  virtual void freed(const FileKey* file, const Range& range) = 0;
  // Whether it does so of this file, where all that is locked may have to be looked through.
  virtual bool mirrors(const FileKey& file) const = 0;
};

class [[nodiscard]] OutsideLock {
 public:
  explicit OutsideLock(OutsideLocks& locks) : locks_(locks) { locks_.lock(); }
  OutsideLock(const OutsideLock&) = delete;
  OutsideLock& operator=(const OutsideLock&) = delete;
  ~OutsideLock() { locks_.unlock(); }

 private:
  OutsideLocks& locks_;
};

}  // namespace stag::nfs::state
