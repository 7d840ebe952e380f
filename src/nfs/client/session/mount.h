// The MOUNT protocol (RFC 1813 section 5, version 3; RFC 1094 appendix A, version 1): from the path
// of an exported directory to the handle that NFS starts from. It travels over TCP (RFC 8267 5.1).
//
// The Channel outlives the Tasks, and `credentials` outlive them too.
#pragma once

#include <string>
#include <vector>

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"
#include "rpc/client.h"

namespace stag::nfs::client {

struct MountPoint {
  Handle root;
  std::string root_path;  // the mounted path: a prefix, by whole components, of the requested one
  std::string rest;       // the rest of that path, without a leading '/': to be walked
  // MOUNT: the security flavors that the server lists; empty: it lists none.
  std::vector<std::int32_t> flavors{};
  // Version 4: `rest` begins with a name that the flavor of the calls does not lead into.
  bool wrong_security = false;
};

struct ListedExport {
  std::string path;
  std::vector<std::string> clients;  // as the server names them; empty: open to all clients
};

// Mounts as much of `path` (absolute) as possible: the longest export that it lies in, whose
// refusal is final; if no export of the server's list contains it, or there is no list, the path
// and then its parent directories in turn. Fails with Kind::Mount when none can be mounted. NFS
// version 2 uses the handles of MOUNT version 1.
Task<Outcome<MountPoint>> mount(rpc::Channel& channel, std::string path,
                                rpc::Credentials credentials, rpc::CallOptions options,
                                std::uint32_t nfs_version = 3);
// Takes the client off the server's list, which is all it does (RFC 1813 5.2.3).
Task<Outcome<Ok>> unmount(rpc::Channel& channel, std::string root_path,
                          rpc::Credentials credentials, rpc::CallOptions options,
                          std::uint32_t nfs_version = 3);
// The security flavors that the server wants for an export, the preferred one first (RFC 1813
// 5.2.1); it mounts the export, and unmounts it again.
Task<Outcome<std::vector<std::uint32_t>>> flavors_of(rpc::Channel& channel, std::string path,
                                                     rpc::Credentials credentials,
                                                     rpc::CallOptions options);
// The exports and the clients that may mount them, as showmount -e prints.
Task<Outcome<std::vector<ListedExport>>> list_exports(rpc::Channel& channel,
                                                      rpc::Credentials credentials,
                                                      rpc::CallOptions options);

}  // namespace stag::nfs::client
