// A security flavor as SECINFO tells it (RFC 8881 18.29, RFC 7530 16.31).
#pragma once

#include "nfs/proto/nfs4.h"
#include "oncrpc/message.h"

namespace stag::nfs::nfs4 {

v4::secinfo4 secinfo_entry(oncrpc::AuthFlavor flavor);

}  // namespace stag::nfs::nfs4
