// Whether what came for a COMPOUND can be taken for its results.
#pragma once

#include <string>

#include "nfs/proto/nfs4.h"

namespace stag::conform::nfs4 {

namespace v4 = stag::nfs::v4;

// RFC 8881 16.2.3, RFC 7530 15.2.4: the tag comes back, each result names its operation, and the
// status is that of the last one, before which there were no errors. Why they are not those of
// `args`, or nothing.
std::string mismatch(const v4::COMPOUND4args& args, const v4::COMPOUND4res& results);

}  // namespace stag::conform::nfs4
