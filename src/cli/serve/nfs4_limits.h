// Limits on what clients of NFS version 4 may keep in a server: options of `stag serve`.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/support/arguments.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/tcp/options.h"

namespace stag::cli {

class Nfs4Limits {
 public:
  void declare(Arguments& arguments);
  void apply(nfs::nfs4::Nfs4Options& options) const;
  // Calls of all slots of a session may wait for a store that hangs: those of others go past them.
  void apply(rpc::tcp::ServerOptions& options) const;
  // Has a server that runs do as these say, as far as it can (Nfs4Server::change()). Thread: any.
  void change(nfs::nfs4::Nfs4Server& server) const { server.change(options_); }

 private:
  void declare_delegations(Arguments& arguments);

  nfs::nfs4::Nfs4Options options_;
  std::optional<std::uint32_t> clients_of_address_, states_of_address_, local_delegations_;
};

}  // namespace stag::cli
