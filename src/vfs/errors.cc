#include "vfs/errors.h"

#include <cerrno>

namespace stag::vfs {

Status status_of(int error) {
  switch (error) {
    case EPERM:
      return Status::Perm;
    case ENOENT:
      return Status::NoEntry;
    case EACCES:
    case EBUSY:    // A mount point is in the way.
    case ETXTBSY:  // Running as a program.
    case ELOOP:
      return Status::Access;  // A symlink where none is followed.
    case EEXIST:
      return Status::Exists;
    case EXDEV:
      return Status::CrossDevice;
    case ENOTDIR:
      return Status::NotDirectory;
    case EISDIR:
      return Status::IsDirectory;
    case EINVAL:
      return Status::Invalid;
    case EFBIG:
    case EOVERFLOW:
      return Status::FileTooBig;
    case ENOSPC:
      return Status::NoSpace;
    case EROFS:
      return Status::ReadOnly;
    case EMLINK:
      return Status::TooManyLinks;
    case ENAMETOOLONG:
      return Status::NameTooLong;
    case ENOTEMPTY:
      return Status::NotEmpty;
    case EDQUOT:
      return Status::QuotaExceeded;
    case ESTALE:
      return Status::Stale;
    case ENOSYS:
    case EOPNOTSUPP:
      return Status::NotSupported;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Status::TooManyObjects;
    case EAGAIN:
    case EINTR:
    case ETIMEDOUT:
      return Status::Delay;
    default:
      return Status::Io;
  }
}

}  // namespace stag::vfs
