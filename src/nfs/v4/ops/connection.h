// The connection of a COMPOUND, as nfs/state knows connections.
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Which connection it is; one of datagrams is none.
inline state::ConnectionId connection_of(const Compound& compound) {
  const auto& connection = compound.admission().call().connection();
  return connection == nullptr ? 0 : connection->id();
}

// What carries callbacks on this connection; expired when nothing does.
state::CallbackConnection callbacks_of(const Compound& compound);

}  // namespace stag::nfs::nfs4
