// ExportTable: the present exports. Every Call takes the Exports that are current when it begins
// and keeps them to its end, so that they can be replaced while Calls are in progress.
//
// To take them costs one atomic load and a reference count that no other thread touches, because
// each thread has a count of its own. Replaced Exports are destroyed when the last Call that took
// them has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "nfs/export/exports.h"

namespace stag::nfs {

class ExportTable {
 public:
  ExportTable();
  ExportTable(const ExportTable&) = delete;
  ExportTable& operator=(const ExportTable&) = delete;

  // From any thread.
  std::shared_ptr<const Exports> current() const;
  // The next ones remember those that are gone with this.
  void replace(Exports exports);

 private:
  // One count for each thread that took the current table.
  using Counts = std::map<std::thread::id, std::shared_ptr<const Exports>>;
  std::shared_ptr<const Exports> take() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const Exports> exports_;
  mutable Counts counts_;
  // Of all tables of this process, each has another number.
  std::atomic<std::uint64_t> version_;
};

}  // namespace stag::nfs
