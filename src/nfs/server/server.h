// nfs/server: NFS versions 2 (RFC 1094) and 3 (RFC 1813) and MOUNT over any vfs::FileSystem.
//
//   nfs::NfsServer nfs(*nfs::ServerState::open("/var/lib/stag"));
//   nfs.add_export("/data", file_system, {});
//   rpc::Server server;
//   nfs.add_programs(server);
//
// Each procedure is a coroutine that turns a file handle into an object of an export, calls the
// store, and makes the results that the RFC defines. Data is never copied: READ passes on the
// store's Buffers, WRITE passes the Buffers that the transport received to the store.
//
// Permissions: the options of an export decide which user a caller acts as (nfs/export/exports.h);
// the store checks that user's permissions. With AUTH_SYS the user is only the client's claim; with
// AUTH_NONE the caller acts as the anonymous user. File handles carry a MAC, so that a client
// cannot reach an object whose handle the server never gave out.
//
// Thread: Calls run on any number of loops. Any thread may replace the exports, one at a time.
// Ownership: the NfsServer outlives the rpc::Server that serves its programs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  // Without exports.
  explicit NfsServer(const ServerState& state);
  ~NfsServer();

  // Adds one export, which may serve Calls at once (ExportSpec has the meaning of the arguments).
  Result<Ok, ExportError> add_export(std::string_view path,
                                     std::shared_ptr<vfs::FileSystem> file_system,
                                     const ExportOptions& options,
                                     std::vector<ClientRule> clients = {});
  // Replaces all exports; on failure nothing changes. Calls in progress end with the exports that
  // they began with. Handles of exports that are gone become stale, and so do those of an export
  // whose path has another tree now (vfs::FileSystem::identity()).
  Result<Ok, ExportError> replace_exports(std::vector<ExportSpec> specs);
  // The present exports. Thread: any.
  std::shared_ptr<const Exports> exports() const;
  // Internal: for the other services of `stag serve`.
  const ServerContext& context() const { return *context_; }
  // The mounts that clients have reported to MOUNT (RFC 1813 5.2.2): hosts and paths, at most
  // 1024. Thread: any.
  std::vector<std::pair<std::string, std::string>> mounts() const;
  // A number for vfs::Attributes::file_system_id of the export at `path`: different for each path,
  // and the same after each start with the same ServerState.
  std::uint64_t file_system_id(std::string_view path) const;

  // Adds the programs NFS (versions 2 and 3), NFSACL and MOUNT; MOUNT is absent on RDMA (RFC 8267
  // section 5.1).
  void add_programs(rpc::Server& server);
  // Adds all of these but MOUNT. None of them is offered on UDP: their data does not fit a
  // datagram.
  void add_nfs(rpc::Server& server);

 private:
  std::unique_ptr<ServerContext> context_;
  std::unique_ptr<MountList> mounts_;
};

}  // namespace stag::nfs
