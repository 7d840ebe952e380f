#include "nfs/session/owner_sequence.h"

#include "nfs/proto/owner_seqid.h"

namespace stag::nfs::session {

OwnerSequence::Verdict OwnerSequence::on_status(v4::seqid4 sent, v4::nfsstat4 status) {
  if (status == v4::NFS4ERR_BAD_SEQID) {
    if (doubts_ == 0) return Verdict::Bad;
    --doubts_;
    return Verdict::Again;
  }
  if (!advances_seqid(status)) return Verdict::Good;
  first_ = sum(sent, 1);
  doubts_ = 0;
  return Verdict::Good;
}

}  // namespace stag::nfs::session
