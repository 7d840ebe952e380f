// Delegations in the arguments and the results of OPEN: what the client wants, and what it is told
// (RFC 8881 18.16).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Whether share_access, but for what it opens for, and the delegation that is claimed again mean
// something.
bool valid_wants(const v4::OPEN4args& args);
// The WANT bits of share_access.
std::uint32_t wants_of(const v4::OPEN4args& args);
// What is said without a look at the file; nullopt: it may get one.
std::optional<v4::why_no_delegation4> why_not(const v4::OPEN4args& args);
state::DelegationType type_for(const v4::OPEN4args& args);

v4::open_delegation4 granted(state::DelegationType type, const state::Stateid& stateid,
                             bool recalled);
// 18.16.3: a client that asked for something is told why it does not get it.
v4::open_delegation4 none(const v4::OPEN4args& args, v4::why_no_delegation4 why);

}  // namespace stag::nfs::nfs4
