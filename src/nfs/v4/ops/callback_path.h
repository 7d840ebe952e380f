// Whether a client can be called back, so that something may be delegated to it.
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// RFC 8167 3.1, 3.2: nothing is delegated that cannot be recalled.
Task<bool> can_call_back(Compound& compound);

// RENEW of a client of version 4.0 that holds delegations (RFC 7530 16.28.5): CB_PATH_DOWN where
// its callbacks fail. Finds out in the background how it is now, for the next RENEW.
v4::nfsstat4 check_callback_path(Compound& compound);

}  // namespace stag::nfs::nfs4
