// What a store has to do, as its workers see it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "net/worker_pool.h"

namespace stag::cli {

struct StoreQueues {
  std::string name;  // "export /data"
  // Operations that end in an fsync have workers of their own.
  net::WorkerPool::Load plain, syncing;
};

using AllStoreQueues = std::function<std::vector<StoreQueues>(TimePoint now)>;

}  // namespace stag::cli
