// What a storage operation answers when it cannot do what was asked. The words are those of errno
// and of RFC 1813 2.6 where both have one, so an NFS server of any version maps them one to one;
// protocol errors stay in the protocol.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace stag::vfs {

enum class Status : std::uint8_t {
  Perm,          // not the owner, or an operation only root may do
  NoEntry,       // no such name
  Io,            // the medium failed; data may be lost
  Access,        // permission bits or ACL say no
  Exists,        // the name is taken
  CrossDevice,   // two objects of different file systems
  NotDirectory,  // an operation on directories got something else
  IsDirectory,   // an operation on anything else got a directory
  Invalid,       // an argument makes no sense for this object
  FileTooBig,    // beyond the largest file size
  NoSpace,
  ReadOnly,
  TooManyLinks,
  NameTooLong,
  NotEmpty,
  QuotaExceeded,
  Stale,           // the handle names nothing (any more)
  BadHandle,       // these bytes never were a handle of this store
  BadCookie,       // the directory position is unknown or its verifier is old
  BadType,         // this kind of object cannot be made here
  NotSync,         // the guard of set_attributes did not match
  NotSymlink,      // readlink of something else
  NotSupported,    // this store never does it
  TooManyObjects,  // out of descriptors or memory for now; asking again later helps
  Delay,           // will take long; ask again later
};

std::string_view to_string(Status status);

template <class T>
using Outcome = Result<T, Status>;

}  // namespace stag::vfs
