// The Upper-Layer Binding of NFS version 4 (RFC 8267 section 6), as a table over rpc::Binding.
//
// The data of READ, WRITE, READLINK and of the CREATE of a symlink is eligible, and nothing else:
// READ_PLUS is not (RFC 8267 6). The n-th READ or READLINK of a COMPOUND meets the n-th Write
// chunk, whether or not it brings data (6.4.1). Constant tables, usable from any thread.
#pragma once

#include "rpc/binding.h"

namespace stag::nfs::ulb {

// Program 100003 version 4.
rpc::Binding nfs4();
// The eligible items of its results, for an Encoder of results that are kept.
std::span<const xdr::ItemId> nfs4_result_items();

}  // namespace stag::nfs::ulb
