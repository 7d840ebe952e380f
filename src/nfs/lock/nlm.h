// The procedures of NLM versions 1, 3 and 4, synchronous and as messages (RFC 1813 6, XNFS 10).
#pragma once

#include "nfs/export/server_context.h"
#include "nfs/lock/lock_manager.h"
#include "nfs/lock/outbox.h"
#include "nfs/lock/records.h"
#include "nfs/lock/stores.h"
#include "rpc/program.h"

namespace stag::nfs::lock {

// What they share; outlives the Calls.
struct Desk {
  const ServerContext& server;
  Stores& stores;
  LockManager& manager;
  Records& records;
  Outbox& outbox;
};

rpc::Program nlm1(Desk& desk);
rpc::Program nlm3(Desk& desk);
rpc::Program nlm4(Desk& desk);

}  // namespace stag::nfs::lock
