// Claims of what clients held before a restart that do not even reach their file, because the
// server cannot decide about its export yet: it has no name for the client, or no groups for the
// user. The grace period goes on meanwhile.
#pragma once

#include "nfs/v4/operation_list.h"

namespace stag::nfs::nfs4 {

// The PUTFH of this COMPOUND was refused with NFS4ERR_DELAY. In version 4.0 only what stands behind
// it says whose it is.
void note_held_up(Compound& compound, const OperationList::Entries& entries);

}  // namespace stag::nfs::nfs4
