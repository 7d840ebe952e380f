// Exclusive locks that somebody else than NFSv4 keeps, as NLM does (nfs/state/outside.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "nfs/state/files.h"

namespace stag::nfs::state::testing {

class OutsideTable final : public OutsideLocks {
 public:
  explicit OutsideTable(Files& files) : files_(files) { files_.share_with(this); }
  ~OutsideTable() override { files_.stop_sharing_with(*this); }

  // Runs in any() and concerns(), after they have looked: what comes in between there is of
  // interest. Set before there are threads.
  void after_each_look(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  Verdict add(const FileKey& file, const Range& range) {
    const std::lock_guard lock(mutex_);
    any_ = true;
    Verdict verdict = conflict(file, range, true)
                          ? Verdict::refused(Status::Denied)
                          : files_.range_conflict(file, range, true).verdict;
    if (verdict.granted()) held_.emplace_back(file, range);
    any_ = !held_.empty();
    return verdict;
  }
  void remove(const FileKey& file, const Range& range) {
    const std::lock_guard lock(mutex_);
    std::erase(held_, std::pair(file, range));
    any_ = !held_.empty();
  }

  bool any() const override {
    const bool seen = any_;
    if (meanwhile_) meanwhile_();
    return seen;
  }
  bool waiting() const override { return waits; }
  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }
  std::optional<ConflictingLock> conflict(const FileKey& file, const Range& range,
                                          bool) const override {
    for (const auto& [of, held] : held_)
      if (of == file && held.overlaps(range)) return ConflictingLock{held, true, 0, {}};
    return std::nullopt;
  }
  bool share_conflict(const FileKey&, std::uint32_t, std::uint32_t) const override { return false; }
  bool concerns(const FileKey& file) const override {
    const bool seen =
        std::any_of(held_.begin(), held_.end(), [&](const auto& one) { return one.first == file; });
    if (meanwhile_) meanwhile_();
    return seen;
  }
  void freed(const FileKey*) override { ++told; }

  std::atomic<bool> waits{false};
  std::atomic<int> told{0};  // that there may be less in the way

 private:
  Files& files_;
  std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::function<void()> meanwhile_;
  std::vector<std::pair<FileKey, Range>> held_;
};

}  // namespace stag::nfs::state::testing
