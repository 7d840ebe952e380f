#include "nfs/client/v4/status.h"

#include <algorithm>
#include <iterator>

namespace stag::nfs::client::nfs4 {
namespace {

struct StatusName {
  v4::nfsstat4 number;
  Status status;
};
constexpr StatusName kStatuses[] = {
    {v4::NFS4_OK, Status::Ok},
    {v4::NFS4ERR_PERM, Status::NotOwner},
    {v4::NFS4ERR_NOENT, Status::NoEntry},
    {v4::NFS4ERR_IO, Status::Io},
    {v4::NFS4ERR_NXIO, Status::NoDeviceOrAddress},
    {v4::NFS4ERR_ACCESS, Status::Access},
    {v4::NFS4ERR_EXIST, Status::Exists},
    {v4::NFS4ERR_XDEV, Status::CrossDevice},
    {v4::NFS4ERR_NOTDIR, Status::NotDirectory},
    {v4::NFS4ERR_ISDIR, Status::IsDirectory},
    {v4::NFS4ERR_INVAL, Status::Invalid},
    {v4::NFS4ERR_FBIG, Status::FileTooBig},
    {v4::NFS4ERR_NOSPC, Status::NoSpace},
    {v4::NFS4ERR_ROFS, Status::ReadOnly},
    {v4::NFS4ERR_MLINK, Status::TooManyLinks},
    {v4::NFS4ERR_NAMETOOLONG, Status::NameTooLong},
    {v4::NFS4ERR_NOTEMPTY, Status::NotEmpty},
    {v4::NFS4ERR_DQUOT, Status::QuotaExceeded},
    {v4::NFS4ERR_STALE, Status::Stale},
    {v4::NFS4ERR_FHEXPIRED, Status::Stale},
    {v4::NFS4ERR_MOVED, Status::Moved},
    {v4::NFS4ERR_BADHANDLE, Status::BadHandle},
    {v4::NFS4ERR_NOT_SAME, Status::NotSync},
    {v4::NFS4ERR_SAME, Status::NotSync},
    {v4::NFS4ERR_BAD_COOKIE, Status::BadCookie},
    {v4::NFS4ERR_NOTSUPP, Status::NotSupported},
    {v4::NFS4ERR_ATTRNOTSUPP, Status::NotSupported},
    {v4::NFS4ERR_OP_ILLEGAL, Status::NotSupported},
    {v4::NFS4ERR_TOOSMALL, Status::TooSmall},
    {v4::NFS4ERR_SERVERFAULT, Status::ServerFault},
    {v4::NFS4ERR_BADTYPE, Status::BadType},
    {v4::NFS4ERR_DELAY, Status::Delay},
    {v4::NFS4ERR_GRACE, Status::Delay},
    {v4::NFS4ERR_SYMLINK, Status::Invalid},
    {v4::NFS4ERR_WRONG_TYPE, Status::Invalid},
    {v4::NFS4ERR_BADNAME, Status::Invalid},
    {v4::NFS4ERR_BADCHAR, Status::Invalid},
    {v4::NFS4ERR_BADOWNER, Status::Invalid},
    {v4::NFS4ERR_OPENMODE, Status::Access},
    {v4::NFS4ERR_WRONGSEC, Status::WrongSecurity},
    {v4::NFS4ERR_WRONG_CRED, Status::Access},
    {v4::NFS4ERR_LOCKED, Status::InUse},
    {v4::NFS4ERR_SHARE_DENIED, Status::InUse},
    {v4::NFS4ERR_FILE_OPEN, Status::InUse},
    {v4::NFS4ERR_UNION_NOTSUPP, Status::NotSupported},
    {v4::NFS4ERR_NOXATTR, Status::NoXattr},
    {v4::NFS4ERR_XATTR2BIG, Status::XattrTooBig},
    {v4::NFS4ERR_RESOURCE, Status::ServerFault},
    {v4::NFS4ERR_REQ_TOO_BIG, Status::ServerFault},
    {v4::NFS4ERR_REP_TOO_BIG, Status::ServerFault},
    {v4::NFS4ERR_REP_TOO_BIG_TO_CACHE, Status::ServerFault},
    {v4::NFS4ERR_DENIED, Status::Locked},
    {v4::NFS4ERR_DEADLOCK, Status::Locked},
    {v4::NFS4ERR_LOCK_RANGE, Status::Invalid},
    {v4::NFS4ERR_BAD_RANGE, Status::Invalid},
    {v4::NFS4ERR_LOCK_NOTSUPP, Status::NotSupported},
};

}  // namespace

Status to_status(v4::nfsstat4 status) {
  const auto* found = std::ranges::find(kStatuses, status, &StatusName::number);
  return found == std::end(kStatuses) ? Status::Unknown : found->status;
}

bool means_lost_state(v4::nfsstat4 status) {
  switch (status) {
    case v4::NFS4ERR_BAD_STATEID:
    case v4::NFS4ERR_OLD_STATEID:
    case v4::NFS4ERR_STALE_STATEID:
    case v4::NFS4ERR_EXPIRED:
    case v4::NFS4ERR_ADMIN_REVOKED:
    case v4::NFS4ERR_BAD_SEQID:  // of an owner of version 4.0
      return true;
    default:
      return false;
  }
}

}  // namespace stag::nfs::client::nfs4
