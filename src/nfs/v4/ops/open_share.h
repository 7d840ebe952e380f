// The share reservation of an OPEN (RFC 8881 9.7).
#pragma once

#include <optional>

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// For the open of a file that is still to be made; clients that lapsed make room. nullopt: a limit
// was reached, and noted.
std::optional<state::ReservedStates> reserve_open(Compound& compound, Bytes open_owner);

// Clients that lapsed and are in the way end, delegations get a second to be given back, and so do
// changes in progress that it denies.
Task<state::OpenResult> reserve_share(Compound& compound, state::OpenArgs wanted);

}  // namespace stag::nfs::nfs4
