#include "cli/observe/gauges.h"

#include <algorithm>

#include "rpc/gss/context_table.h"

namespace stag::cli {
namespace {

using nfs::state::Life;

void count_client(const nfs::nfs4::ListedClient& client, Gauges& to) {
  if (!client.info.confirmed)
    ++to.unconfirmed;
  else
    ++(client.info.phase == Life::Phase::Active ? to.confirmed : to.courtesy);
  to.sessions += client.info.sessions;
  to.opens += client.held.opens;
  to.locks += client.held.locks;
  to.delegations += client.held.delegations;
}

}  // namespace

Gauges take_gauges(const GaugeSources& from, TimePoint now) {
  Gauges gauges;
  for (std::uint32_t shard = 0; shard < nfs::state::Clients::kShards; ++shard)
    for (const nfs::nfs4::ListedClient& client : from.clients.clients(shard, now))
      count_client(client, gauges);
  gauges.grace = from.grace.info();
  // One that is due ends with the next request.
  if (gauges.grace.active) gauges.grace_left = std::max(gauges.grace.end - now, Duration(1));
  for (const auto& [host, held] : from.locks.clients()) {
    ++gauges.lock_hosts;
    gauges.nlm_locks += held;
  }
  if (from.contexts != nullptr) {
    gauges.contexts = from.contexts->established();
    gauges.half_open_contexts = from.contexts->half_open();
  }
  gauges.stores = from.stores(now);
  gauges.process = from.process.usage();
  return gauges;
}

}  // namespace stag::cli
