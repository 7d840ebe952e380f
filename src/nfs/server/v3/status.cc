#include "nfs/server/v3/status.h"

#include <array>
#include <initializer_list>
#include <iterator>

#include "base/check.h"

namespace stag::nfs::nfs3 {

namespace {

using v3::nfsstat3;
using enum v3::nfsstat3;
using StatusSet = std::uint64_t;

// Errors have numbers up to 71 and from 10001 on; both fit a word of bits.
constexpr StatusSet bit(nfsstat3 status) {
  constexpr nfsstat3 kOrder[] = {
      NFS3_OK,          NFS3ERR_PERM,        NFS3ERR_NOENT,    NFS3ERR_IO,          NFS3ERR_NXIO,
      NFS3ERR_ACCES,    NFS3ERR_EXIST,       NFS3ERR_XDEV,     NFS3ERR_NODEV,       NFS3ERR_NOTDIR,
      NFS3ERR_ISDIR,    NFS3ERR_INVAL,       NFS3ERR_FBIG,     NFS3ERR_NOSPC,       NFS3ERR_ROFS,
      NFS3ERR_MLINK,    NFS3ERR_NOTEMPTY,    NFS3ERR_DQUOT,    NFS3ERR_NAMETOOLONG, NFS3ERR_STALE,
      NFS3ERR_REMOTE,   NFS3ERR_BADHANDLE,   NFS3ERR_NOT_SYNC, NFS3ERR_BAD_COOKIE,  NFS3ERR_NOTSUPP,
      NFS3ERR_TOOSMALL, NFS3ERR_SERVERFAULT, NFS3ERR_BADTYPE,  NFS3ERR_JUKEBOX,
  };
  StatusSet at = 1;
  for (const nfsstat3 known : kOrder) {
    if (known == status) return at;
    at <<= 1;
  }
  return 0;
}

constexpr StatusSet set(std::initializer_list<nfsstat3> statuses) {
  StatusSet all = 0;
  for (const nfsstat3 status : statuses) all |= bit(status);
  return all;
}

// Every procedure's list has these.
constexpr StatusSet kAll =
    set({NFS3_OK, NFS3ERR_STALE, NFS3ERR_BADHANDLE, NFS3ERR_SERVERFAULT, NFS3ERR_JUKEBOX});
constexpr StatusSet kCreating =
    kAll | set({NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_EXIST, NFS3ERR_NOTDIR, NFS3ERR_NOSPC,
                NFS3ERR_ROFS, NFS3ERR_NAMETOOLONG, NFS3ERR_DQUOT, NFS3ERR_NOTSUPP, NFS3ERR_INVAL});
constexpr StatusSet kListing =
    kAll | set({NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_NOTDIR, NFS3ERR_BAD_COOKIE, NFS3ERR_TOOSMALL});
// PERM is in none of the lists of the removing procedures, which section 3.3 calls a guide and not
// complete. It is the error of a local user for an entry that the sticky bit protects, and Linux's
// server returns it.
constexpr StatusSet kRemoving = kAll | set({NFS3ERR_PERM, NFS3ERR_NOENT, NFS3ERR_IO, NFS3ERR_ACCES,
                                            NFS3ERR_NOTDIR, NFS3ERR_NAMETOOLONG, NFS3ERR_ROFS});

// RFC 1813 3.3.1 to 3.3.21, ERRORS.
constexpr std::array<StatusSet, 22> kMayReturn = {
    bit(NFS3_OK),            // NULL
    kAll | bit(NFS3ERR_IO),  // GETATTR
    kAll |
        set({NFS3ERR_PERM, NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_INVAL, NFS3ERR_NOSPC, NFS3ERR_ROFS,
             NFS3ERR_DQUOT, NFS3ERR_NOT_SYNC, NFS3ERR_FBIG,
             NFS3ERR_NOTSUPP}),  // SETATTR; NOTSUPP is not in its list, but section 2.6 defines it
    kAll | set({NFS3ERR_IO, NFS3ERR_NOENT, NFS3ERR_ACCES, NFS3ERR_NOTDIR,
                NFS3ERR_NAMETOOLONG}),                                        // LOOKUP
    kAll | bit(NFS3ERR_IO),                                                   // ACCESS
    kAll | set({NFS3ERR_IO, NFS3ERR_INVAL, NFS3ERR_ACCES, NFS3ERR_NOTSUPP}),  // READLINK
    kAll | set({NFS3ERR_IO, NFS3ERR_NXIO, NFS3ERR_ACCES, NFS3ERR_INVAL}),     // READ
    kAll | set({NFS3ERR_IO, NFS3ERR_ACCES, NFS3ERR_FBIG, NFS3ERR_DQUOT, NFS3ERR_NOSPC, NFS3ERR_ROFS,
                NFS3ERR_INVAL}),                                                         // WRITE
    kCreating,                                                                           // CREATE
    kCreating | bit(NFS3ERR_MLINK),                                                      // MKDIR
    kCreating,                                                                           // SYMLINK
    kCreating | bit(NFS3ERR_BADTYPE),                                                    // MKNOD
    kRemoving,                                                                           // REMOVE
    kRemoving | set({NFS3ERR_INVAL, NFS3ERR_EXIST, NFS3ERR_NOTEMPTY, NFS3ERR_NOTSUPP}),  // RMDIR
    kCreating | set({NFS3ERR_PERM, NFS3ERR_NOENT, NFS3ERR_XDEV, NFS3ERR_ISDIR, NFS3ERR_MLINK,
                     NFS3ERR_NOTEMPTY}),                     // RENAME
    kCreating | set({NFS3ERR_XDEV, NFS3ERR_MLINK}),          // LINK
    kListing,                                                // READDIR
    kListing | bit(NFS3ERR_NOTSUPP),                         // READDIRPLUS
    kAll | bit(NFS3ERR_IO),                                  // FSSTAT
    kAll,                                                    // FSINFO
    kAll,                                                    // PATHCONF
    kAll | set({NFS3ERR_IO, NFS3ERR_NOSPC, NFS3ERR_DQUOT}),  // COMMIT
};

// In the order of vfs::Status.
constexpr nfsstat3 kGeneric[] = {
    NFS3ERR_PERM,     NFS3ERR_NOENT,  NFS3ERR_IO,        NFS3ERR_ACCES,       NFS3ERR_EXIST,
    NFS3ERR_XDEV,     NFS3ERR_NOTDIR, NFS3ERR_ISDIR,     NFS3ERR_INVAL,       NFS3ERR_FBIG,
    NFS3ERR_NOSPC,    NFS3ERR_ROFS,   NFS3ERR_MLINK,     NFS3ERR_NAMETOOLONG, NFS3ERR_NOTEMPTY,
    NFS3ERR_DQUOT,    NFS3ERR_STALE,  NFS3ERR_BADHANDLE, NFS3ERR_BAD_COOKIE,  NFS3ERR_BADTYPE,
    NFS3ERR_NOT_SYNC,
    NFS3ERR_INVAL,  // NotSymlink: RFC 1813 3.3.5
    NFS3ERR_NOTSUPP,
    NFS3ERR_JUKEBOX,  // TooManyObjects: asking again later helps
    NFS3ERR_JUKEBOX,
};
static_assert(std::size(kGeneric) == static_cast<std::size_t>(vfs::Status::Delay) + 1);

// The nearest statuses to one that a procedure may not return: `first` if the procedure may return
// it, else `second` or its nearest ones.
struct Nearest {
  nfsstat3 status, first, second;
};
constexpr Nearest kNearest[] = {
    {NFS3ERR_PERM, NFS3ERR_ACCES, NFS3ERR_STALE},
    // 2.6: STALE also means that "access to it has been revoked".
    {NFS3ERR_ACCES, NFS3ERR_STALE, NFS3ERR_STALE},
    {NFS3ERR_NOENT, NFS3ERR_STALE, NFS3ERR_STALE},
    {NFS3ERR_NOTEMPTY, NFS3ERR_EXIST, NFS3ERR_IO},
    {NFS3ERR_NODEV, NFS3ERR_NXIO, NFS3ERR_IO},
    {NFS3ERR_BADTYPE, NFS3ERR_NOTSUPP, NFS3ERR_IO},
    {NFS3ERR_DQUOT, NFS3ERR_NOSPC, NFS3ERR_IO},
    {NFS3ERR_FBIG, NFS3ERR_INVAL, NFS3ERR_NOSPC},
    // 3.3.6: READ of a directory is INVAL.
    {NFS3ERR_ISDIR, NFS3ERR_INVAL, NFS3ERR_INVAL},
    {NFS3ERR_NOTDIR, NFS3ERR_INVAL, NFS3ERR_INVAL},
    {NFS3ERR_INVAL, NFS3ERR_ACCES, NFS3ERR_IO},
    {NFS3ERR_IO, NFS3ERR_SERVERFAULT, NFS3ERR_SERVERFAULT},
};

nfsstat3 nearest(std::uint32_t procedure, nfsstat3 status) {
  for (const Nearest& entry : kNearest)
    if (entry.status == status)
      return may_return(procedure, entry.first) ? entry.first : entry.second;
  return NFS3ERR_IO;
}

}  // namespace

bool may_return(std::uint32_t procedure, nfsstat3 status) {
  STAG_CHECK(procedure > 0 && procedure < kMayReturn.size());
  return (kMayReturn[procedure] & bit(status)) != 0;
}

nfsstat3 permitted(std::uint32_t procedure, nfsstat3 wanted) {
  // Ends: every chain of nearest() ends at STALE or SERVERFAULT, which all procedures may return.
  while (!may_return(procedure, wanted)) wanted = nearest(procedure, wanted);
  return wanted;
}

nfsstat3 to_nfsstat3(vfs::Status status) {
  return kGeneric[static_cast<std::size_t>(status)];
}

nfsstat3 to_nfsstat3(Refusal refusal) {
  switch (refusal) {
    case Refusal::BadHandle:
      return NFS3ERR_BADHANDLE;
    case Refusal::ExportGone:
      return NFS3ERR_STALE;
    case Refusal::Undecided:
      return NFS3ERR_JUKEBOX;
    case Refusal::NotAdmitted:
    case Refusal::WrongSecurity:
      break;
  }
  return NFS3ERR_ACCES;
}

nfsstat3 to_nfsstat3(std::uint32_t procedure, vfs::Status status) {
  return permitted(procedure, to_nfsstat3(status));
}

}  // namespace stag::nfs::nfs3
