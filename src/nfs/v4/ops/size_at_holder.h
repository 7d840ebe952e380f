// What only the holder of a write delegation knows (RFC 8881 10.4.3).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// nullopt: as the server knows it.
using SizeAtHolder = Result<std::optional<std::uint64_t>, v4::nfsstat4>;

// What the holder of a write delegation of the file, if that is another client, has changed of it
// and not written yet (RFC 8881 10.4.3): its size. A holder that does not say so in time is asked
// to give the delegation back; NFS4ERR_DELAY as long as it has not, for nobody knows (18.7.4).
Task<SizeAtHolder> size_at_holder(Compound& compound, ExportObject file);

}  // namespace stag::nfs::nfs4
