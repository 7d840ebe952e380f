// A claim of what a client held before a restart, while the server works on it: the grace period
// does not end in the middle (RFC 8881 8.4.2.1).
#pragma once

#include <optional>

#include "nfs/proto/nfs4.h"
#include "nfs/state/grace_period.h"

namespace stag::nfs::nfs4 {

class Compound;

// Refers to the Compound.
class Reclaim {
 public:
  // `claims`: whether the operation is such a claim. Its client is known, or there is none.
  Reclaim(const Compound& compound, bool claims);
  // With this status, which it returns. A client that is asked to come again has not lost its turn.
  v4::nfsstat4 ended(v4::nfsstat4 status) const;

 private:
  const Compound& compound_;
  std::optional<state::GracePeriod::Claim> claim_;
};

}  // namespace stag::nfs::nfs4
