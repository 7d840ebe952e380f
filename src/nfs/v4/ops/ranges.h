// What the operations on ranges of files have in common (RFC 7862 section 15).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// What a store refused, as a status: an object that is no regular file is WRONG_TYPE, whatever the
// store calls it.
Task<v4::nfsstat4> range_status(const ExportObject& file, vfs::Status refusal);
// The same of operations that follow the rules of READ, which have a status of their own for
// directories and symbolic links (15.10.3, RFC 8881 18.22.3).
Task<v4::nfsstat4> read_status(const ExportObject& file, vfs::Status refusal);

}  // namespace stag::nfs::nfs4
