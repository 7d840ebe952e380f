// Access control lists of NFSv4 (RFC 8881 6.2) to and from those of vfs, as the withdrawn
// draft-ietf-nfsv4-acl-mapping says and Linux's server does it. A list of vfs becomes one with the
// same meaning. Of a list of NFSv4 only reading, writing and executing are kept, and an entry that
// denies binds as far as the other form can say it.
#pragma once

#include <vector>

#include "base/result.h"
#include "nfs/proto/nfs4.h"
#include "nfs/v4/attributes/id_map.h"
#include "vfs/acl.h"

namespace stag::nfs::nfs4 {

using Aces = std::vector<v4::nfsace4>;

// The most entries that are taken from a client.
inline constexpr std::uint32_t kMaxAces = 256;

// Users and groups are numbers.
Aces to_aces(const vfs::Acls& acls, bool directory);
// What the name in an entry is the name of, where it is none of the special ones.
inline IdKind kind_of(const v4::nfsace4& ace) {
  return (ace.flag & v4::ACE4_IDENTIFIER_GROUP) != 0 ? IdKind::Group : IdKind::User;
}
// Both lists are present, of a directory. ATTRNOTSUPP for types and flags that are not supported,
// INVAL for inheritance by what is no directory, BADOWNER for a name that is no number.
Result<vfs::SetAcls, v4::nfsstat4> from_aces(const Aces& aces, bool directory);

}  // namespace stag::nfs::nfs4
