#include "nfs/session/owner_sequence.h"

namespace stag::nfs::session {
namespace {

// RFC 7530 9.1.7: after these the number stays as it was.
bool leaves_number(v4::nfsstat4 status) {
  switch (status) {
    case v4::NFS4ERR_STALE_CLIENTID:
    case v4::NFS4ERR_STALE_STATEID:
    case v4::NFS4ERR_BAD_STATEID:
    case v4::NFS4ERR_BADXDR:
    case v4::NFS4ERR_RESOURCE:
    case v4::NFS4ERR_NOFILEHANDLE:
    case v4::NFS4ERR_MOVED:
      return true;
    default:
      return false;
  }
}

}  // namespace

OwnerSequence::Verdict OwnerSequence::on_status(v4::seqid4 sent, v4::nfsstat4 status) {
  if (status == v4::NFS4ERR_BAD_SEQID) {
    if (doubts_ == 0) return Verdict::Bad;
    --doubts_;
    return Verdict::Again;
  }
  if (leaves_number(status)) return Verdict::Good;
  first_ = sum(sent, 1);
  doubts_ = 0;
  return Verdict::Good;
}

}  // namespace stag::nfs::session
