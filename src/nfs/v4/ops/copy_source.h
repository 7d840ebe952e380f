// The source of a COPY from another server, as its client names it (RFC 7862 4.7, 15.2).
#pragma once

#include <vector>

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/compound/source_servers.h"

namespace stag::nfs::nfs4 {

class Offloads;

// The file of another server that is copied, and where that may be reached.
struct CopySource {
  std::vector<SourcePlace> places;
  SourceArgs args;
  bool synchronous = false;  // the copy does not go on after its answer
};

// That of a COPY whose saved filehandle is foreign, or with what it is refused. `offloads` may be
// null.
Result<CopySource, v4::nfsstat4> source_of(const Compound& compound, const Offloads* offloads,
                                           const v4::COPY4args& args);

}  // namespace stag::nfs::nfs4
