// ExportStores: the stores of each export on which a lock was ever requested, so that a lock can be
// released after the export was removed, closed to its holder, or moved to another store: a copy of
// its file system has its identity, and so keeps the handles that clients know. Thread: any. It has
// one entry for each such store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/inline_vector.h"

namespace stag::nfs::lock {

class ExportStores {
 public:
  using Stores = InlineVector<std::uint64_t, 1>;

  void note(std::uint32_t export_id, std::uint64_t store) {
    const std::scoped_lock lock(mutex_);
    Stores& stores = stores_[export_id];
    if (std::find(stores.begin(), stores.end(), store) == stores.end()) stores.push_back(store);
  }
  // None when no lock was ever requested on this export.
  Stores of(std::uint32_t export_id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = stores_.find(export_id);
    return found == stores_.end() ? Stores() : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Stores> stores_;
};

}  // namespace stag::nfs::lock
