// For both ends of NFSv4.0, which must agree on it: how the seqids of open and lock owners go on.
#pragma once

#include "nfs/proto/nfs4.h"

namespace stag::nfs {

// RFC 7530 9.1.7: whether the owner's next operation takes the next seqid. After the other errors
// the server is still waiting for the one of this operation.
inline bool advances_seqid(v4::nfsstat4 status) {
  switch (status) {
    case v4::NFS4ERR_STALE_CLIENTID:
    case v4::NFS4ERR_STALE_STATEID:
    case v4::NFS4ERR_BAD_STATEID:
    case v4::NFS4ERR_BAD_SEQID:
    case v4::NFS4ERR_BADXDR:
    case v4::NFS4ERR_RESOURCE:
    case v4::NFS4ERR_NOFILEHANDLE:
    case v4::NFS4ERR_MOVED:
      return false;
    default:
      return true;
  }
}

}  // namespace stag::nfs
