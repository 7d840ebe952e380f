// nfs/server: NFS version 3 and MOUNT version 3 (RFC 1813) over any vfs::FileSystem.
//
//   nfs::NfsServer nfs(*nfs::ServerState::open("/var/lib/stag"));
//   nfs.add_export("/data", file_system, {});
//   rpc::Server server;
//   nfs.add_programs(server);
//
// Each procedure is a coroutine of its own (procedures.h) that turns a file handle into an object
// of an export, asks the store, and words the answer as RFC 1813 has it. Data is never copied here:
// READ passes on the store's Buffers, WRITE hands over those the transport received.
//
// Who may do what: an export's options decide as whom a caller acts (exports.h); the store checks
// that user's permissions. AUTH_SYS is only what a client claims, and AUTH_NONE acts as the
// anonymous user. File handles carry a MAC (file_handle.h), so nobody reaches an object whose
// handle was never given out.
//
// Threads: exports are added first; from then on everything but the list of mounts (its own mutex)
// is constant, and Calls run on as many loops as there are. Outlives the rpc::Server.
#pragma once

#include <memory>
#include <string_view>

#include "nfs/server/exports.h"
#include "nfs/server/state/server_state.h"

namespace stag::rpc {
class Server;
}

namespace stag::nfs {

class MountList;
struct Served;

class NfsServer {
 public:
  explicit NfsServer(const ServerState& state);
  ~NfsServer();

  // Before add_programs(). The file system may serve several exports.
  Result<Ok, ExportError> add_export(std::string_view path,
                                     std::shared_ptr<vfs::FileSystem> file_system,
                                     const ExportOptions& options);
  const Exports& exports() const;

  // Registers NFS and MOUNT, which RFC 8267 5.1 wants on TCP.
  void add_programs(rpc::Server& server);
  // Registers NFS alone.
  void add_nfs(rpc::Server& server);

 private:
  std::unique_ptr<Served> served_;
  std::unique_ptr<MountList> mounts_;
};

}  // namespace stag::nfs
