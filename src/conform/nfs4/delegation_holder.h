// A client that can be called and holds a delegation to read "f" (RFC 8881 10.4, RFC 7530 10.4), as
// cases need it. A server gives a delegation when it chooses to; where it does not, they are
// skipped.
#pragma once

#include <functional>

#include "conform/nfs4/script.h"

namespace stag::conform::nfs4 {

// The stateid that the holder has.
inline constexpr const char* kDelegation = "delegation of f";

// `scene`: of the client that every case has, `holder`: of the one with the delegation. Both know
// "own" and "f", which only the holder has open.
using DelegationUse = std::function<Task<Verdict>(Scene& scene, Scene& holder)>;
Task<Verdict> with_delegation(Scene& scene, DelegationUse use);
// DELEGRETURN.
Task<Reply> give_back(Scene& holder);

}  // namespace stag::conform::nfs4
