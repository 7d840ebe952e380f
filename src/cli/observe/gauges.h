// Gauges: what a server holds at this moment, for metrics and `stag status`. Taken without
// disturbing the loops that serve: one shard, one table, one pool at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/observe/process_usage.h"
#include "cli/observe/store_queues.h"
#include "nfs/lock/lock_service.h"
#include "nfs/server/server.h"
#include "nfs/state/grace_period.h"
#include "nfs/v4/administration.h"

namespace stag::rpc {
class ContextTable;
}

namespace stag::cli {

struct Gauges {
  // Clients of version 4.
  std::uint64_t confirmed = 0, unconfirmed = 0, courtesy = 0;
  std::uint64_t sessions = 0, opens = 0, locks = 0, delegations = 0;
  // The grace period, or the last one.
  nfs::state::GracePeriod::Info grace;
  Duration grace_left{};  // zero: there is none
  // Hosts and locks of NLM.
  std::uint64_t lock_hosts = 0, nlm_locks = 0;
  // Contexts of RPCSEC_GSS.
  std::uint64_t contexts = 0, half_open_contexts = 0;
  std::vector<StoreQueues> stores;
  bool reload_succeeded = true;  // of the configuration, the last one
  ProcessUsage process;
};

// What of a server is looked at; all of it outlives the GaugeSources.
struct GaugeSources {
  nfs::nfs4::Administration clients;
  nfs::lock::LockService& locks;
  AllStoreQueues stores;
  const rpc::ContextTable* contexts = nullptr;  // null: it has none
  const nfs::NfsServer& nfs;
  nfs::state::GracePeriod& grace;
  const ProcessUsageSource& process;
};

// Any thread.
Gauges take_gauges(const GaugeSources& from, TimePoint now);

}  // namespace stag::cli
