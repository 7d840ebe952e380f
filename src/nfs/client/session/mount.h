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
  std::string root_path;  // what was mounted: a whole-component prefix of the path asked for
  std::string rest;       // what follows it, without a leading '/': to be walked
};

struct ListedExport {
  std::string path;
  std::vector<std::string> clients;  // as the server names them; empty: open to everybody
};

// Finds what of `path` (absolute) can be mounted: the longest export that it lies in; where the
// server does not give its list, the path and then its parent directories in turn. Mount when
// none can be. NFS version 2 takes its handles from MOUNT version 1.
Task<Outcome<MountPoint>> mount(rpc::Channel& channel, std::string path,
                                rpc::Credentials credentials, rpc::CallOptions options,
                                std::uint32_t nfs_version = 3);
// Takes the client off the server's list, which is all it does (RFC 1813 5.2.3).
Task<Outcome<Ok>> unmount(rpc::Channel& channel, std::string root_path,
                          rpc::Credentials credentials, rpc::CallOptions options,
                          std::uint32_t nfs_version = 3);
// The exports and the clients that may mount them, as showmount -e prints.
Task<Outcome<std::vector<ListedExport>>> list_exports(rpc::Channel& channel,
                                                      rpc::Credentials credentials,
                                                      rpc::CallOptions options);

}  // namespace stag::nfs::client
