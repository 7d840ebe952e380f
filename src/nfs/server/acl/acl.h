// NFSACL versions 2 and 3 (RFC 8267 5.2): access control lists over the same exports, handles and
// stores as NFS, on the same connections, RDMA included. A store keeps POSIX lists (vfs/acl.h);
// ulb::received_acl() removes what the wire form adds to them.
//
// No RFC defines the statuses of the procedures: they are those of NFS of the same version. A list
// with more entries than NFSACL carries, which a local user may have made, is an input/output
// error.
#pragma once

#include "nfs/export/server_context.h"
#include "rpc/program.h"

namespace stag::nfs::acl {

// Program 100227 versions 2 and 3. `server` outlives them.
rpc::Program program2(const ServerContext& server);
rpc::Program program3(const ServerContext& server);

}  // namespace stag::nfs::acl
