// Version 4 has one name space instead of MOUNT (RFC 8881 section 7): the file system that a path
// lies in takes the place of the export that version 3 would mount.
#pragma once

#include "nfs/client/protocol/protocol.h"
#include "nfs/client/session/mount.h"

namespace stag::nfs::client {

// Looks the components of `path` up from `root`, the server's, as far as they are directories. The
// last one that is on another file system than its parent is the root of the MountPoint; else the
// server's root is. A name that is not found, or that may not be looked up, ends the search:
// whoever walks the rest meets it again. Fails when there is no answer.
Task<Outcome<MountPoint>> find_file_system(Protocol& protocol, Found root, std::string path);

}  // namespace stag::nfs::client
