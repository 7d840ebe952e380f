// MOUNT versions 1 and 2 (RFC 1094 appendix A; version 2 adds PATHCONF): version 3 (mount.h) with
// handles for NFS version 2.
#pragma once

#include "nfs/server/mount/mount.h"

namespace stag::nfs::mount {

// Program 100005. `served` and `mounts` outlive it.
rpc::Program program1(const Served& served, MountList& mounts);
rpc::Program program2(const Served& served, MountList& mounts);

}  // namespace stag::nfs::mount
