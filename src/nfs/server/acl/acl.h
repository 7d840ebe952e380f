// NFSACL versions 2 and 3 (RFC 8267 5.2): access control lists over the same exports, handles and
// stores as NFS, on the same connections, RDMA included. A store keeps POSIX lists (vfs/acl.h);
// what the wire adds to them is undone by ulb::received_acl().
//
// No RFC says what the procedures may answer: statuses are those of NFS of the same version. Lists
// of more entries than NFSACL carries, which a local user may have made, are an input/output error.
#pragma once

#include "nfs/export/server_context.h"
#include "rpc/program.h"

namespace stag::nfs::acl {

// Program 100227 versions 2 and 3. `server` outlives them.
rpc::Program program2(const ServerContext& server);
rpc::Program program3(const ServerContext& server);

}  // namespace stag::nfs::acl
