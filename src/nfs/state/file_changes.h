// The changes of files that are in progress: let through, and the store has not done with them.
//
// A FileChange begins before the Verdict on it is asked for; it lives from a Verdict that grants it
// to the end of the store's operation, and ends at once with any other: nobody waits for others
// with a FileChange in hand. It costs no memory and no lock. Who is to deny writing, or to get a
// delegation, first makes Files::guarded() true and then asks in_progress(); who changes something
// begins, and then asks guarded(). So where both come at the same time, at least one of them sees
// the other.
//
// Files whose hashes agree share a counter: a change of one may be taken for one of the other,
// which defers a share reservation (Delay) or costs a delegation.
//
// Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "nfs/state/types.h"

namespace stag::nfs::state {

// One change, which ends with it. FileChanges outlives it; an empty one is of nothing.
class FileChange {
 public:
  FileChange() = default;
  FileChange(FileChange&& other) noexcept : counter_(std::exchange(other.counter_, nullptr)) {}
  FileChange& operator=(FileChange&& other) noexcept {
    std::swap(counter_, other.counter_);
    return *this;
  }
  ~FileChange() { end(); }

  void end() {
    if (auto* const counter = std::exchange(counter_, nullptr))
      counter->fetch_sub(1, std::memory_order_release);
  }
  // For somebody else who goes on with the same change.
  FileChange another() const { return counter_ == nullptr ? FileChange() : FileChange(*counter_); }

 private:
  friend class FileChanges;
  using Counter = std::atomic<std::uint32_t>;
  explicit FileChange(Counter& counter) : counter_(&counter) { counter.fetch_add(1); }

  Counter* counter_ = nullptr;
};

class FileChanges {
 public:
  // `secret`: peers that do not know it cannot tell which files share a counter.
  explicit FileChanges(std::uint64_t secret) : multiplier_(secret | 1) {}

  FileChange begin(const FileKey& file) { return FileChange(counter_of(file)); }
  bool in_progress(const FileKey& file) const { return counter_of(file).load() != 0; }

 private:
  static constexpr int kBits = 14;

  FileChange::Counter& counter_of(const FileKey& file) const {
    const std::uint64_t hash = (vfs::HandleHash()(file.handle) ^ file.store) * multiplier_;
    return (*counters_)[hash >> (64 - kBits)];
  }

  const std::uint64_t multiplier_;
  const std::unique_ptr<std::array<FileChange::Counter, 1 << kBits>> counters_ =
      std::make_unique<std::array<FileChange::Counter, 1 << kBits>>();
};

}  // namespace stag::nfs::state
