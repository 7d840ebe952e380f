// ServerContext: the objects that all Calls to an NFS server share, whatever their program and
// version.
#pragma once

#include <cstdint>
#include <memory>

#include "nfs/export/deferred_calls.h"
#include "nfs/export/export_table.h"
#include "nfs/export/file_handle.h"
#include "nfs/export/local_locks.h"
#include "nfs/export/state/server_state.h"
#include "nfs/state/gate.h"

namespace stag::nfs {

// Constant while serving, but for the exports, which may be replaced from any thread.
struct ServerContext {
  explicit ServerContext(const ServerState& state)
      : handles(state.handle_key), boot_verifier(state.boot_verifier) {}

  const FileHandles handles;
  const std::uint64_t boot_verifier;
  ExportTable exports;
  // What clients of version 4 have against what others want to do.
  const std::unique_ptr<state::Gate> gate = std::make_unique<state::Gate>();
  const std::unique_ptr<DeferredCalls> deferred = std::make_unique<DeferredCalls>();
  // Calls that wait a moment for the name of their client. All of a connection wait for the same.
  const std::unique_ptr<DeferredCalls> unnamed = std::make_unique<DeferredCalls>(
      DeferredLimits{.of_connection = 64, .of_address = 256, .in_all = 4096});
  // What all clients have locked, as programs of this machine see it.
  const std::unique_ptr<LocalLockTable> local_locks = std::make_unique<LocalLockTable>();

  // Changes with each start of the server, and whenever the store reports that unstable data may be
  // lost (RFC 1813 3.3.7, 3.3.21).
  std::uint64_t write_verifier(const vfs::FileSystem& file_system) const {
    return boot_verifier + file_system.write_verifier_epoch();
  }
};

}  // namespace stag::nfs
