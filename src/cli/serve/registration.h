// Registration: the entries of `stag serve` in the local rpcbind: every program at every listener,
// for the transports it is present on. They are recorded in the state directory, so that the next
// run can remove the entries that a crash left behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "endpoint/client.h"
#include "rpc/server.h"
#include "rpcbind/registrar.h"

namespace stag::cli {

// An address where a server listens, with the actual port.
struct ServedAt {
  rpc::TransportKind transport = rpc::TransportKind::Tcp;
  Address address;
};

// rpcbind keeps one address for each program, version and netid; of several listeners the one that
// most hosts can reach is registered. A listener at "::" serves IPv4 as well. `rdma_netid` is that
// of RPC-over-RDMA on IPv4.
std::vector<rpcbind::Registration> registrations_of(const rpc::Server& server,
                                                    std::vector<ServedAt> listeners,
                                                    std::string_view rdma_netid);

// Replaces what `state_directory` has of the entries in rpcbind that may be there; where that fails
// it stays. The error is a sentence.
Result<Ok, std::string> record_registrations(
    const std::string& state_directory, const std::vector<rpcbind::Registration>& registrations);

// What is recorded; nothing where there is no record. The error is a sentence.
Result<std::vector<rpcbind::Registration>, std::string> recorded_registrations(
    const std::string& state_directory);

// Entries exist from make() to destruction. Not used on a loop's thread.
class RegisteredPrograms {
 public:
  // The error is one sentence.
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
