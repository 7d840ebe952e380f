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
  // What is not set follows from what is: the share of an address from what all have together.
  void apply(nfs::nfs4::Nfs4Options& options) const;
  // Calls of all slots of a session may wait for a store that hangs: those of others go past them.
  void apply(rpc::tcp::ServerOptions& options) const;
  // Of all stores of the process. At the start.
  void limit_local_delegations() const;

 private:
  void declare_delegations(Arguments& arguments);

  nfs::nfs4::Nfs4Options options_;
  std::optional<std::uint32_t> clients_of_address_, states_of_address_, local_delegations_;
};

}  // namespace stag::cli
