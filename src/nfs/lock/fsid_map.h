// FsidMap: the number that stands for an export's store in a FileKey: the number of its file
// system, which all exports of one store share and which stays the same when the store is opened
// again. The map keeps it, so that a lock can be released after the export was removed or closed to
// its holder. Thread: any. One entry for each export that ever was.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace stag::nfs::lock {

class FsidMap {
 public:
  // The first number stays: locks are kept under it.
  std::uint64_t note(std::uint32_t export_id, std::uint64_t file_system_id) {
    const std::scoped_lock lock(mutex_);
    return numbers_.emplace(export_id, file_system_id).first->second;
  }
  // nullopt when no lock was ever requested on this export.
  std::optional<std::uint64_t> find(std::uint32_t export_id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = numbers_.find(export_id);
    if (found == numbers_.end()) return std::nullopt;
    return found->second;
  }
  // The exports with this number on which a lock was requested.
  std::vector<std::uint32_t> exports_with(std::uint64_t file_system_id) const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint32_t> exports;
    for (const auto& [export_id, number] : numbers_)
      if (number == file_system_id) exports.push_back(export_id);
    return exports;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> numbers_;
};

}  // namespace stag::nfs::lock
