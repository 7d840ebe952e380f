// Setting the attribute acl (RFC 8881 6.2.1).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// After the other attributes (6.4.1.3). ATTRNOTSUPP where there are no lists.
Task<v4::nfsstat4> set_acl(const ExportObject& object, const Aces& aces);

}  // namespace stag::nfs::nfs4
