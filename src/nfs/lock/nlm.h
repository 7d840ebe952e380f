// The procedures of NLM versions 1, 3 and 4, synchronous and as messages (RFC 1813 6, XNFS 10).
#pragma once

#include "nfs/export/server_context.h"
#include "nfs/lock/callback_sender.h"
#include "nfs/lock/export_stores.h"
#include "nfs/lock/lock_manager.h"
#include "nfs/lock/records.h"
#include "rpc/program.h"

namespace stag::nfs::lock {

// What the procedures share; outlives all Calls.
struct NlmContext {
  const ServerContext& server;
  ExportStores& stores;
  LockManager& manager;
  Records& records;
  CallbackSender& callbacks;

  // Whether this host has locks, or may still reclaim some.
  bool needs_record(const std::string& address) const {
    return manager.knows(address) || (manager.in_grace() && records.was_notified(address));
  }
};

rpc::Program nlm1(NlmContext& context);
rpc::Program nlm3(NlmContext& context);
rpc::Program nlm4(NlmContext& context);

}  // namespace stag::nfs::lock
