// Access control lists to and from those of NFSACL (proto/nfsacl.x), whose versions 2 and 3 have
// the same.
#pragma once

#include "nfs/client/protocol/error.h"
#include "nfs/proto/nfsacl.h"

namespace stag::nfs::client {

// `acls` with entries in any order. An empty access list leaves the mode alone.
nfsacl::secattr to_secattr(const Acls& acls, bool with_defaults);
Outcome<Acls> from_secattr(OperationContext context, const nfsacl::secattr& found);

}  // namespace stag::nfs::client
