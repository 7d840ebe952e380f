// The Upper-Layer Binding of NFS version 2 (RFC 8267 section 4), as nfs3.h has it for version 3:
// the data of READ and WRITE and the text of links may travel by chunk, nothing else, and every
// Reply size follows from the arguments.
#pragma once

#include "rpc/binding.h"

namespace stag::nfs::ulb {

// Program 100003 version 2.
rpc::Binding nfs2();

}  // namespace stag::nfs::ulb
