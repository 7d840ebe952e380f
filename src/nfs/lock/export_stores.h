// ExportStores: the store of each export on which a lock was ever requested, so that a lock can be
// released after the export was removed or closed to its holder. Thread: any. It has one entry for
// each such export.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace stag::nfs::lock {

class ExportStores {
 public:
  // The first store of an export stays: its locks are kept under it.
  std::uint64_t note(std::uint32_t export_id, std::uint64_t store) {
    const std::scoped_lock lock(mutex_);
    return stores_.emplace(export_id, store).first->second;
  }
  // 0 when no lock was ever requested on this export.
  std::uint64_t find(std::uint32_t export_id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = stores_.find(export_id);
    return found == stores_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> stores_;
};

}  // namespace stag::nfs::lock
