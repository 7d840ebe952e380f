// Access control lists of NFSv4 (RFC 8881 6.2) to and from those of vfs, as the withdrawn
// draft-ietf-nfsv4-acl-mapping says and Linux's server does it. A list of vfs becomes one with the
// same meaning. Of a list of NFSv4 only reading, writing and executing are kept, and an entry that
// denies binds as far as the other form can say it. The server keeps lists so, and the client says
// them so.
#pragma once

#include <vector>

#include "base/result.h"
#include "nfs/proto/nfs4.h"
#include "vfs/acl.h"

namespace stag::nfs::nfs4 {

using Aces = std::vector<v4::nfsace4>;

// Users and groups are numbers.
Aces to_aces(const vfs::Acls& acls, bool directory);
// Both lists are present, of a directory. ATTRNOTSUPP for types and flags that are not supported,
// INVAL for inheritance by what is no directory, BADOWNER for a name that is no number.
Result<vfs::SetAcls, v4::nfsstat4> from_aces(const Aces& aces, bool directory);

}  // namespace stag::nfs::nfs4
