// The statuses of nfs/state, by name (RFC 8881 15.1, RFC 7530 13.1). Where a limit of states is
// reached it is DELAY in version 4.0, too: the client shall try again, and RESOURCE (13.1.3.4) is
// about a COMPOUND that is too much, which Linux's client takes for an error for good.
#pragma once

#include "nfs/proto/nfs4.h"
#include "nfs/state/types.h"

namespace stag::nfs::nfs4 {

v4::nfsstat4 to_nfsstat4(state::Status status);

}  // namespace stag::nfs::nfs4
