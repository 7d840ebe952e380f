#include "nfs/v4/ops/owner_turn.h"

namespace stag::nfs::nfs4 {

bool advances_seqid(v4::nfsstat4 status) {
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

bool on_pseudo_fs(const Compound& compound) {
  return std::holds_alternative<const PseudoFs::Node*>(compound.current());
}

}  // namespace stag::nfs::nfs4
