// The statuses of nfs/state, by name (RFC 8881 15.1).
#pragma once

#include "nfs/proto/nfs4.h"
#include "nfs/state/types.h"

namespace stag::nfs::nfs4 {

v4::nfsstat4 to_nfsstat4(state::Status status);

}  // namespace stag::nfs::nfs4
