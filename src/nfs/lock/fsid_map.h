// FsidMap: the file system number of each export, by which a FileKey names the store: all exports
// of one store share it, and it stays the same when the store is opened again. The map keeps it, so
// that a lock can be released after the export was removed or closed to its holder. Thread: any. It
// has one entry for each export on which a lock was ever requested.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace stag::nfs::lock {

class FsidMap {
 public:
  // The first number of an export stays: its locks are kept under it.
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
