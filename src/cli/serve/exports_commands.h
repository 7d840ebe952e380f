// The command "exports" of the control socket, for `stag status exports`: a row for each client of
// each export, or, with a member "address", what the host at that address gets of each.
#pragma once

#include "cli/control/control_socket.h"
#include "cli/serve/export_set.h"
#include "nfs/server/server.h"

namespace stag::cli {

// Outlives the ControlSocket that has its command. On the loop of that.
class ExportsCommands {
 public:
  // Both outlive it.
  ExportsCommands(const nfs::NfsServer& nfs, const ExportSet& exports)
      : nfs_(nfs), exports_(exports) {}
  void add_to(ControlCommands& commands) const;

 private:
  Task<std::string> list(const ControlRequest& request, ControlReply& reply) const;
  void list_all(ControlReply& reply) const;
  Task<void> list_for(std::string address, ControlReply& reply) const;

  const nfs::NfsServer& nfs_;
  const ExportSet& exports_;
};

}  // namespace stag::cli
