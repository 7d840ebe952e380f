// The MOUNT protocol: versions 1 and 2 (RFC 1094 appendix A; version 2 adds PATHCONF) give handles
// for NFS version 2, version 3 (RFC 1813 appendix I) for NFS version 3. A path becomes the file
// handle of the directory it names. RFC 8267 5.1 has MOUNT offered over TCP, not RDMA.
#pragma once

#include "nfs/export/server_context.h"
#include "nfs/server/mount/mount_list.h"
#include "rpc/program.h"

namespace stag::nfs::mount {

// Program 100005. `server` and `mounts` outlive them.
rpc::Program program1(const ServerContext& server, MountList& mounts);
rpc::Program program2(const ServerContext& server, MountList& mounts);
rpc::Program program3(const ServerContext& server, MountList& mounts);

}  // namespace stag::nfs::mount
