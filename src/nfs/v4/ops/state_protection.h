// What an EXCHANGE_ID asks to be protected by the credential of the client's machine, and what this
// server protects (RFC 8881 2.10.8.3, 18.35).
#pragma once

#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

// Nothing where the client does not ask for SP4_MACH_CRED.
state::StateProtection protection_of(const v4::state_protect4_a& asked);
v4::state_protect_ops4 ops_of(const state::StateProtection& protection);

}  // namespace stag::nfs::nfs4
