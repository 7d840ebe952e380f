#include "vfs/status.h"

namespace stag::vfs {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::Perm:
      return "operation not permitted";
    case Status::NoEntry:
      return "no such file or directory";
    case Status::Io:
      return "input/output error";
    case Status::Access:
      return "permission denied";
    case Status::Exists:
      return "file exists";
    case Status::CrossDevice:
      return "not on the same file system";
    case Status::NotDirectory:
      return "not a directory";
    case Status::IsDirectory:
      return "is a directory";
    case Status::Invalid:
      return "invalid argument";
    case Status::FileTooBig:
      return "file too large";
    case Status::NoSpace:
      return "no space left";
    case Status::ReadOnly:
      return "read-only file system";
    case Status::TooManyLinks:
      return "too many links";
    case Status::NameTooLong:
      return "file name too long";
    case Status::NotEmpty:
      return "directory not empty";
    case Status::QuotaExceeded:
      return "disk quota exceeded";
    case Status::Stale:
      return "stale file handle";
    case Status::BadHandle:
      return "not a file handle of this store";
    case Status::BadCookie:
      return "unknown directory position";
    case Status::BadType:
      return "object type not supported";
    case Status::NotSync:
      return "changed since the guard time";
    case Status::NotSymlink:
      return "not a symbolic link";
    case Status::NotSupported:
      return "operation not supported";
    case Status::TooManyObjects:
      return "out of descriptors or memory";
    case Status::Delay:
      return "busy, ask again later";
  }
  return "unknown status";
}

}  // namespace stag::vfs
