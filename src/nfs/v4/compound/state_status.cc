#include "nfs/v4/compound/state_status.h"

namespace stag::nfs::nfs4 {

v4::nfsstat4 to_nfsstat4(state::Status status) {
  switch (status) {
    case state::Status::Ok:
      return v4::NFS4_OK;
    case state::Status::AdminRevoked:
      return v4::NFS4ERR_ADMIN_REVOKED;
    case state::Status::BadSeqid:
      return v4::NFS4ERR_BAD_SEQID;
    case state::Status::BadSession:
      return v4::NFS4ERR_BADSESSION;
    case state::Status::BadSlot:
      return v4::NFS4ERR_BADSLOT;
    case state::Status::BadStateid:
      return v4::NFS4ERR_BAD_STATEID;
    case state::Status::ClidInuse:
      return v4::NFS4ERR_CLID_INUSE;
    case state::Status::ClientidBusy:
      return v4::NFS4ERR_CLIENTID_BUSY;
    case state::Status::CompleteAlready:
      return v4::NFS4ERR_COMPLETE_ALREADY;
    case state::Status::ConnNotBoundToSession:
      return v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
    case state::Status::Delay:
      return v4::NFS4ERR_DELAY;
    case state::Status::DelegRevoked:
      return v4::NFS4ERR_DELEG_REVOKED;
    case state::Status::Denied:
      return v4::NFS4ERR_DENIED;
    case state::Status::Expired:
      return v4::NFS4ERR_EXPIRED;
    case state::Status::Grace:
      return v4::NFS4ERR_GRACE;
    case state::Status::Inval:
      return v4::NFS4ERR_INVAL;
    case state::Status::Locked:
      return v4::NFS4ERR_LOCKED;
    case state::Status::LocksHeld:
      return v4::NFS4ERR_LOCKS_HELD;
    case state::Status::NoGrace:
      return v4::NFS4ERR_NO_GRACE;
    case state::Status::Noent:
      return v4::NFS4ERR_NOENT;
    case state::Status::Nospc:
      return v4::NFS4ERR_NOSPC;
    case state::Status::NotSame:
      return v4::NFS4ERR_NOT_SAME;
    case state::Status::OldStateid:
      return v4::NFS4ERR_OLD_STATEID;
    case state::Status::Openmode:
      return v4::NFS4ERR_OPENMODE;
    case state::Status::Perm:
      return v4::NFS4ERR_PERM;
    case state::Status::ReclaimBad:
      return v4::NFS4ERR_RECLAIM_BAD;
    case state::Status::ReclaimConflict:
      return v4::NFS4ERR_RECLAIM_CONFLICT;
    case state::Status::ReqTooBig:
      return v4::NFS4ERR_REQ_TOO_BIG;
    case state::Status::SeqFalseRetry:
      return v4::NFS4ERR_SEQ_FALSE_RETRY;
    case state::Status::SeqMisordered:
      return v4::NFS4ERR_SEQ_MISORDERED;
    case state::Status::Serverfault:
      return v4::NFS4ERR_SERVERFAULT;
    case state::Status::ShareDenied:
      return v4::NFS4ERR_SHARE_DENIED;
    case state::Status::StaleClientid:
      return v4::NFS4ERR_STALE_CLIENTID;
    case state::Status::StaleStateid:
      return v4::NFS4ERR_STALE_STATEID;
    case state::Status::Toosmall:
      return v4::NFS4ERR_TOOSMALL;
    case state::Status::TooManyOps:
      return v4::NFS4ERR_TOO_MANY_OPS;
    case state::Status::WrongCred:
      return v4::NFS4ERR_WRONG_CRED;
  }
  return v4::NFS4ERR_SERVERFAULT;
}

}  // namespace stag::nfs::nfs4
