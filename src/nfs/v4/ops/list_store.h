// READDIR of a directory of an export.
#pragma once

#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

// At most `bytes` of entries.
Task<ReaddirResults> list_store(Compound& compound, const v4::READDIR4args& args,
                                AttributeSet asked, std::uint32_t bytes);

}  // namespace stag::nfs::nfs4
