// How large the results of a COMPOUND may be, before it is decoded.
#pragma once

#include <cstdint>

#include "xdr/decoder.h"

namespace stag::nfs::nfs4 {

// Bytes of data that the operations ask for, up to `most` of them: of READ, READ_PLUS, READDIR,
// READLINK, GETXATTR, LISTXATTRS, and of the attribute `acl`. All other results are short. What
// cannot be decoded ends the sum, as it ends the COMPOUND. Asks for no memory in COMPOUNDs without
// operations that change something.
std::uint64_t results_max(xdr::Decoder& compound, std::uint32_t most);

}  // namespace stag::nfs::nfs4
