// What `stag serve` tells the rpcbind of its machine: every program at every listener, by the
// transports it is present on. What was registered is recorded in the state directory, so that the
// next run can clear what a crash left behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "endpoint/client.h"
#include "rpc/server.h"
#include "rpcbind/registrar.h"

namespace stag::cli {

// Where a server listens, with the real address.
struct ServedAt {
  rpc::TransportKind transport = rpc::TransportKind::Tcp;
  Address address;
};

// rpcbind keeps one address for each program, version and netid: of several the one that reaches
// furthest. A listener at "::" serves IPv4 as well. `rdma_netid` is that of RPC-over-RDMA on IPv4.
std::vector<rpcbind::Registration> registrations_of(const rpc::Server& server,
                                                    std::vector<ServedAt> listeners,
                                                    std::string_view rdma_netid);

// Registered from make() to its destruction. Used from a thread that is no loop's.
class RegisteredPrograms {
 public:
  // One sentence when it cannot be done.
  static Result<std::unique_ptr<RegisteredPrograms>, std::string> make(
      std::vector<rpcbind::Registration> wanted, const std::string& state_directory,
      std::shared_ptr<endpoint::Loops> loops);
  ~RegisteredPrograms();

  // "nfs 3 (tcp, rdma)", one for each program and version.
  std::vector<std::string> summary() const;

 private:
  RegisteredPrograms(endpoint::Client client, std::string record);

  endpoint::Client client_;
  std::string record_;
  rpcbind::Registrar registrar_;
};

}  // namespace stag::cli
