// Access control lists as the kernel passes them in extended attributes: a version, then entries of
// tag, permissions and id, all little-endian (linux/posix_acl_xattr.h).
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "vfs/acl.h"

namespace stag::vfs {

inline constexpr const char* kAccessAcl = "system.posix_acl_access";
inline constexpr const char* kDefaultAcl = "system.posix_acl_default";

// Nothing when the bytes are no list.
std::optional<Acl> acl_of_xattr(Bytes bytes);
// The list is not empty: that is the absence of the attribute.
std::vector<std::byte> xattr_of_acl(const Acl& acl);

}  // namespace stag::vfs
