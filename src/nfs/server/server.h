// nfs/server: NFS versions 2 (RFC 1094) and 3 (RFC 1813) and MOUNT over any vfs::FileSystem.
//
//   nfs::NfsServer nfs(*nfs::ServerState::open("/var/lib/stag"));
//   nfs.add_export("/data", file_system, {});
//   rpc::Server server;
//   nfs.add_programs(server);
//
// Each procedure is a coroutine of its own (procedures.h) that turns a file handle into an object
// of an export, asks the store, and makes the results that the RFC asks for. Data is never copied
// here: READ passes on the store's Buffers, WRITE hands over those the transport received.
//
// Who may do what: an export's options decide as whom a caller acts (exports.h); the store checks
// that user's permissions. AUTH_SYS is only what a client claims, and AUTH_NONE acts as the
// anonymous user. File handles carry a MAC (file_handle.h), so nobody reaches an object whose
// handle was never given out.
//
// Threads: Calls run on as many loops as there are. The exports may be replaced at any time
// (export_table.h), one replacement at a time; the list of mounts has its own mutex; everything
// else is constant. Outlives the rpc::Server.
#pragma once

#include <memory>
#include <string_view>

#include "nfs/export/exports.h"
#include "nfs/export/state/server_state.h"

namespace stag::rpc {
class Server;
}

namespace stag::nfs {

class MountList;
struct ServerContext;

class NfsServer {
 public:
  explicit NfsServer(const ServerState& state);
  ~NfsServer();

  Result<Ok, ExportError> add_export(std::string_view path,
                                     std::shared_ptr<vfs::FileSystem> file_system,
                                     const ExportOptions& options,
                                     std::vector<ClientRule> clients = {});
  // These and no others from now on; on failure nothing changes. Calls in progress end with the
  // exports they began with; handles of exports that are no longer there are stale, and so are
  // those of an export whose name has another tree now (vfs::FileSystem::identity()).
  Result<Ok, ExportError> replace_exports(std::vector<ExportSpec> specs);
  std::shared_ptr<const Exports> exports() const;
  // For the services beside NFS (nfs/lock).
  const ServerContext& context() const { return *context_; }
  // A number for vfs::Attributes::file_system_id that differs from export to export and is the same
  // after each start with the same state.
  std::uint64_t file_system_id(std::string_view path) const;

  // Registers NFS and MOUNT, which RFC 8267 5.1 wants on TCP.
  void add_programs(rpc::Server& server);
  // Registers NFS alone.
  void add_nfs(rpc::Server& server);

 private:
  std::unique_ptr<ServerContext> context_;
  std::unique_ptr<MountList> mounts_;
};

}  // namespace stag::nfs
