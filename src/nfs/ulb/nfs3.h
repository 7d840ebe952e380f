// The Upper-Layer Bindings of NFS version 3 and of the MOUNT protocol (RFC 8267 sections 3 to 5),
// as tables over rpc::Binding. This is the one place that knows which fields of these programs are
// DDP-eligible; xdr knows where they stand, rpcrdma how they travel.
//
// Reply sizes are exact maxima computed from the arguments (RFC 8267 4.1), so the table allows
// short Reply chunk retry for no procedure. Constant tables, usable from any thread.
#pragma once

#include "rpc/binding.h"

namespace stag::nfs::ulb {

// The longest link text a READLINK reply can bring when the caller does not know better (Linux
// PATH_MAX). RFC 1813 gives no bound; servers of this project store no longer text.
inline constexpr std::uint32_t kMaxLinkText = 4096;

// The most that the lists of MOUNT (DUMP, EXPORT) may take, in bytes. They travel over TCP only.
inline constexpr std::uint32_t kMaxMountList = 1 << 20;

// Program 100003 version 3.
rpc::Binding nfs3();
// Program 100005, versions 1 to 3. Nothing is eligible (RFC 8166 section 6: no binding, no reduction).
rpc::Binding mount3();

}  // namespace stag::nfs::ulb
