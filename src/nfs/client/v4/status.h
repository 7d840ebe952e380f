// Statuses of version 4 as those of no version.
#pragma once

#include "nfs/client/protocol/types.h"
#include "nfs/proto/nfs4.h"

namespace stag::nfs::client::nfs4 {

Status to_status(v4::nfsstat4 status);
// The server asks to come back: DELAY, and GRACE after its restart.
inline bool asks_to_wait(v4::nfsstat4 status) {
  return status == v4::NFS4ERR_DELAY || status == v4::NFS4ERR_GRACE;
}

// RFC 8881 8.2.4, 8.5: what the stateid named, the server does not know, or has given up.
bool means_lost_state(v4::nfsstat4 status);

}  // namespace stag::nfs::client::nfs4
