// Values of NFS version 3 (RFC 1813 2.5, 2.6) to and from the client's own.
#pragma once

#include "nfs/client/protocol/types.h"
#include "nfs/proto/nfs3.h"

namespace stag::nfs::client::nfs3 {

// Unknown for a number that RFC 1813 does not have.
Status to_status(std::uint32_t status);

// A Handle that is too long for version 3 becomes an empty one, which draws NFS3ERR_BADHANDLE.
v3::nfs_fh3 to_nfs_fh3(const Handle& handle);
Handle to_handle(const v3::nfs_fh3& handle);
std::optional<Handle> to_handle(const v3::post_op_fh3& handle);

Attributes to_attributes(const v3::fattr3& attributes);
std::optional<Attributes> to_attributes(const v3::post_op_attr& attributes);

// Times that 32 bits without sign do not hold become the nearest that they hold.
v3::nfstime3 to_nfstime3(const Time& time);
v3::sattr3 to_sattr3(const SetAttributes& attributes);
v3::ftype3 to_ftype3(FileType type);

}  // namespace stag::nfs::client::nfs3
