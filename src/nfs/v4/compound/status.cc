#include "nfs/v4/compound/status.h"

#include <iterator>

namespace stag::nfs::nfs4 {

namespace {

using enum v4::nfsstat4;

// In the order of vfs::Status.
constexpr v4::nfsstat4 kOfStore[] = {
    NFS4ERR_PERM,       NFS4ERR_NOENT,  NFS4ERR_IO,        NFS4ERR_ACCESS,      NFS4ERR_EXIST,
    NFS4ERR_XDEV,       NFS4ERR_NOTDIR, NFS4ERR_ISDIR,     NFS4ERR_INVAL,       NFS4ERR_FBIG,
    NFS4ERR_NOSPC,      NFS4ERR_ROFS,   NFS4ERR_MLINK,     NFS4ERR_NAMETOOLONG, NFS4ERR_NOTEMPTY,
    NFS4ERR_DQUOT,      NFS4ERR_STALE,  NFS4ERR_BADHANDLE, NFS4ERR_BAD_COOKIE,  NFS4ERR_BADTYPE,
    NFS4ERR_INVAL,       // NotSync: no operation of version 4 has a guard
    NFS4ERR_WRONG_TYPE,  // NotSymlink: RFC 8881 18.24.3
    NFS4ERR_NOTSUPP,
    NFS4ERR_DELAY,  // TooManyObjects: asking again later helps
    NFS4ERR_DELAY,
};
static_assert(std::size(kOfStore) == static_cast<std::size_t>(vfs::Status::Delay) + 1);

}  // namespace

v4::nfsstat4 to_nfsstat4(vfs::Status status) {
  return kOfStore[static_cast<std::size_t>(status)];
}

v4::nfsstat4 to_nfsstat4(Refusal refusal) {
  switch (refusal) {
    case Refusal::BadHandle:
      return NFS4ERR_BADHANDLE;
    case Refusal::ExportGone:
      return NFS4ERR_STALE;
    case Refusal::NotAdmitted:
      return NFS4ERR_ACCESS;
    case Refusal::Undecided:
      return NFS4ERR_DELAY;
    case Refusal::WrongSecurity:
      break;
  }
  return NFS4ERR_WRONGSEC;
}

}  // namespace stag::nfs::nfs4
