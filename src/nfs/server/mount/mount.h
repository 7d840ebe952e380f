// The MOUNT protocol, version 3 (RFC 1813 appendix I): from the name of an exported directory to
// its file handle. RFC 8267 5.1 has it offered over TCP.
#pragma once

#include "base/task.h"
#include "nfs/proto/mount3.h"
#include "nfs/server/mount/mount_list.h"
#include "nfs/server/v3/request.h"

namespace stag::nfs::mount {

// The longest export that the path lies in, and the walk from its root to the rest of the path with
// the caller's own permissions. No link is followed.
Task<mount3::mountres3> mnt(const Served& served, MountList& mounts, const rpc::CallContext& call,
                            mount3::dirpath path);
mount3::mountlist dump(const MountList& mounts);
mount3::exports exports(const Served& served);
// The caller as the list of mounts knows it.
std::string_view host_of(const rpc::CallContext& call);

}  // namespace stag::nfs::mount
