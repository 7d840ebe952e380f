// What a store has to do with programs that use its files on the same machine, without NFS: leases,
// by which it learns that one of them wants a file, and locks that they see.
#pragma once

#include <cstdint>
#include <optional>

#include "base/loop.h"
#include "base/result.h"
#include "base/unique_function.h"
#include "vfs/status.h"

namespace stag::vfs {

// Read: somebody opens the file for writing or truncates it. Write: opens it at all.
enum class LeaseKind : std::uint8_t { Read, Write };

using LeaseWanted = UniqueFunction<void(Duration waits)>;

// Given back when it is destroyed, on whatever thread.
class Lease {
 public:
  virtual ~Lease() = default;
  // Once somebody wants the file: how long he waits for it, counted from then on.
  virtual std::optional<Duration> wanted() const = 0;
};

// Bytes `first` to `last`, both included; the last one of all: to the end of the file.
struct LocalRange {
  std::uint64_t first = 0;
  std::uint64_t last = ~std::uint64_t{0};
};

// A lock of a local program.
struct LocalLock {
  LocalRange range;
  bool exclusive = false;
};

enum class LockMode : std::uint8_t { None, Shared, Exclusive };

// The locks of one file that the server has against local programs, as one owner: gone when this is
// destroyed. Nothing here blocks or waits. Thread: any, one at a time.
class LocalLocks {
 public:
  virtual ~LocalLocks() = default;
  // Gives the range this mode, whatever it had. Yields the lock that is in the way of it; then
  // nothing has changed.
  virtual Outcome<std::optional<LocalLock>> set(LocalRange range, LockMode mode) = 0;
  // A lock that would be in the way.
  virtual std::optional<LocalLock> conflict(LocalRange range, LockMode mode) const = 0;
};

}  // namespace stag::vfs
