// ExportTable: the present exports, which can be replaced while Calls are in progress. A Call keeps
// each export that it uses to its end, and no other one: while it hangs in one store, the file
// system of an export that is removed meanwhile goes.
//
// To keep one costs one atomic load and a reference count that no other thread touches, because
// each thread has counts of its own. A removed export is destroyed when the last Call that keeps it
// has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "nfs/export/exports.h"

namespace stag::nfs {

class ExportTable {
 public:
  ExportTable();
  ExportTable(const ExportTable&) = delete;
  ExportTable& operator=(const ExportTable&) = delete;

  // From any thread.

  // The present export with this id; null: there is none.
  std::shared_ptr<const Export> keep(std::uint32_t id) const;
  // All of them, which nobody keeps while a store is waited for.
  std::shared_ptr<const Exports> current() const;
  // Exports::nested() of the present ones.
  bool nested() const;
  // The next ones remember those that are gone with this.
  void replace(Exports exports);

 private:
  struct Present {
    std::shared_ptr<const Exports> exports;
    std::vector<std::shared_ptr<const Export>> each{};  // the same ones, in the order of their ids
  };
  // One count of each for each thread, null until the thread uses it.
  using Counts = std::map<std::thread::id, Present>;
  static Present present(Exports exports);
  Present& take() const;
  std::shared_ptr<const Exports> take_all() const;
  std::shared_ptr<const Export> take_one(std::uint32_t id) const;

  mutable std::mutex mutex_;
  Present present_;
  mutable Counts counts_;
  // Of all tables of this process, each has another number.
  std::atomic<std::uint64_t> version_;
};

}  // namespace stag::nfs
