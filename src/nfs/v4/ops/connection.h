// The connection of a COMPOUND, as nfs/state knows connections.
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Which connection it is; one of datagrams is none.
state::ConnectionId connection_of(const Compound& compound);

// What carries callbacks on this connection; expired when nothing does.
state::CallbackConnection callbacks_of(const Compound& compound);

}  // namespace stag::nfs::nfs4
