// Status: why an operation of a store failed. The names are those of errno and of RFC 1813 section
// 2.6, so that a server of any NFS version maps them one to one. Errors of a protocol are not among
// them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace stag::vfs {

enum class Status : std::uint8_t {
  Perm,          // the caller is not the owner, or only root may do this
  NoEntry,       // there is no such name
  Io,            // the medium failed; data may be lost
  Access,        // permission bits or an access control list forbid it
  Exists,        // the name is taken
  CrossDevice,   // two objects of different file systems
  NotDirectory,  // the object should be a directory
  IsDirectory,   // the object should not be a directory
  Invalid,       // an argument makes no sense for this object
  FileTooBig,    // beyond the largest file size
  NoSpace,
  ReadOnly,
  TooManyLinks,
  NameTooLong,
  NotEmpty,
  QuotaExceeded,
  Stale,           // the handle names nothing any more
  BadHandle,       // the bytes never were a handle of this store
  BadCookie,       // the directory position is unknown or its verifier is old
  BadType,         // this kind of object cannot be made here
  NotSync,         // the guard of set_attributes did not match
  NotSymlink,      // readlink() of an object that is no symbolic link
  NotSupported,    // this store never does that
  TooManyObjects,  // no descriptor or memory is left for now; a later try may succeed
  Delay,           // the operation would take long; the caller tries again later
};

// A phrase for users: "permission denied". Static data.
std::string_view to_string(Status status);

template <class T>
using Outcome = Result<T, Status>;

}  // namespace stag::vfs
