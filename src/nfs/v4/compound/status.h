// What a store, an admission or the state core answers, as a status of NFSv4 (RFC 8881 section 15).
#pragma once

#include "nfs/export/admission.h"
#include "nfs/proto/nfs4.h"
#include "vfs/status.h"

namespace stag::nfs::nfs4 {

v4::nfsstat4 to_nfsstat4(vfs::Status status);
v4::nfsstat4 to_nfsstat4(Refusal refusal);

}  // namespace stag::nfs::nfs4
