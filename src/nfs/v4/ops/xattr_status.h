// What the operations on extended attributes have in common (RFC 8276 section 8.4).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// What a store refused, as a status of these operations (8.4.5).
Task<v4::nfsstat4> xattr_status(const ExportObject& object, vfs::Status refusal);

}  // namespace stag::nfs::nfs4
