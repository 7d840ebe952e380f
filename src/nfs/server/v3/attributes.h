// NFSv3 attributes to and from those of vfs (RFC 1813 2.5, 2.6).
#pragma once

#include "base/result.h"
#include "nfs/proto/nfs3.h"
#include "vfs/vfs.h"

namespace stag::nfs::nfs3 {

v3::nfstime3 to_nfstime3(vfs::Time time);
v3::fattr3 to_fattr3(const vfs::Attributes& attributes);
v3::post_op_attr to_post_op_attr(const vfs::Attributes& attributes);
v3::post_op_attr to_post_op_attr(const std::optional<vfs::Attributes>& attributes);
v3::wcc_data to_wcc_data(const vfs::Change& change);

// nullopt when a time has a billion nanoseconds or more (RFC 1813 2.5, nfstime3).
std::optional<vfs::Time> from_nfstime3(const v3::nfstime3& time);
// nullopt when a time or an owner has an impossible value.
std::optional<vfs::SetAttributes> from_sattr3(const v3::sattr3& attributes);

}  // namespace stag::nfs::nfs3
