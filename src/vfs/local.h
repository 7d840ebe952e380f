// What a store shares with programs that use its files on the same machine, without NFS: leases, by
// which the server learns that a program wants a file, and locks that programs see.
#pragma once

#include <cstdint>
#include <optional>

#include "base/loop.h"
#include "base/result.h"
#include "base/unique_function.h"
#include "vfs/status.h"

namespace stag::vfs {

// What the lease tells of. Read: a program opens the file for writing or truncates it. Write: a
// program opens the file, for whatever purpose.
enum class LeaseKind : std::uint8_t { Read, Write };

using LeaseWanted = UniqueFunction<void(Duration waits)>;

// Given back when it is destroyed, on whatever thread.
class Lease {
 public:
  virtual ~Lease() = default;
  // nullopt: no program wants the file. Else how long the program that wants it waits for it,
  // counted from when it began to wait.
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
  // Gives the range this mode, whatever it had. Yields a lock of a program that conflicts; then
  // nothing has changed.
  virtual Outcome<std::optional<LocalLock>> set(LocalRange range, LockMode mode) = 0;
  // A lock of a program that conflicts with this mode; nullopt: there is none.
  virtual std::optional<LocalLock> conflict(LocalRange range, LockMode mode) const = 0;
};

}  // namespace stag::vfs
