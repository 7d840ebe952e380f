// Losses: how often data of one file system that was written, and not committed, may have been lost
// while this process runs. All trees of the file system share one: the kernel tells of a loss only
// once, to whichever of them syncs first.
//
// Thread: any. Lives as long as the process.
#pragma once

#include <atomic>
#include <cstdint>

namespace stag::vfs::posix {

class Losses {
 public:
  // Of the file system with this device number. A number that is new begins where no epoch that was
  // told before can be repeated: it may be that of a disk that was mounted under another one.
  // Throws bad_alloc.
  static Losses& of(std::uint64_t device);

  explicit Losses(std::uint64_t epoch) : epoch_(epoch) {}
  std::uint64_t epoch() const { return epoch_.load(); }
  void add() {
    total_.fetch_add(1);
    epoch_.fetch_add(1);
  }

 private:
  static inline std::atomic<std::uint64_t> total_{0};  // of all file systems: no epoch is above it
  std::atomic<std::uint64_t> epoch_;
};

}  // namespace stag::vfs::posix
