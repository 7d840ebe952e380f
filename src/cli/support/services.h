// Which RPC programs a host serves, and where: from rpcbind where there is one, and by asking the
// programs of NFS themselves at the usual ports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/support/remote.h"
#include "endpoint/options.h"
#include "nfs/client/session/mount.h"

namespace stag::cli {

struct Ports {
  std::uint32_t rdma = endpoint::kRdmaPort;
  std::uint32_t tcp = endpoint::kTcpPort;
  std::uint32_t rpcbind = 111;
};

struct Service {
  std::uint32_t program = 0;
  std::string versions;  // "3", "2-4"
  std::string netid;     // "tcp", "rdma"
  std::uint32_t port = 0;
  bool answered = false;  // the program itself answered; otherwise only rpcbind lists it
};

struct FoundExport {
  nfs::client::ListedExport listed;
  // Security flavors by the names of exports(5), or their numbers; empty: this client is not told.
  std::vector<std::string> flavors{};
};

struct Findings {
  std::vector<Service> services{};
  std::optional<std::vector<FoundExport>> exports{};  // from MOUNT, where it is served
  std::string trouble{};                              // why a port did not answer; the last one
};

// `fabric` is that of the URL, if any.
Task<Findings> look_for_services(Run& run, std::string host, Ports ports, RemoteOptions options,
                                 std::optional<nfs::client::Url::Fabric> fabric);

// "nfs"; empty for one that has no name here.
std::string_view program_name(std::uint32_t program);

}  // namespace stag::cli
