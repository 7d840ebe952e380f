// The two forms of access control lists that a copy meets: those of POSIX, which files of this
// machine and NFSACL have, and those of NFS version 4 (RFC 8881 section 6).
#pragma once

#include <optional>

#include "nfs/client/protocol/types.h"

namespace stag::cli {

// The access list that says what `mode` does.
nfs::client::Acls acls_of_mode(std::uint32_t mode);
// The list of version 4 with the same meaning, users and groups being numbers; nullopt: these are
// no complete lists. Without an access list, the one that `mode` stands for.
std::optional<nfs::client::Nfs4Acl> to_nfs4_acl(const nfs::client::Acls& acls, bool directory,
                                                std::uint32_t mode = 0);
// The lists of POSIX that allow no more than `acl`, of which only reading, writing and executing
// are kept; nullopt where there are none: a name that is no number, an audit, an inheritance that
// ends.
std::optional<nfs::client::Acls> to_posix_acls(const nfs::client::Nfs4Acl& acl, bool directory);
// Whether the list says more than a mode does.
bool beyond_mode(const nfs::client::Nfs4Acl& acl, bool directory);

}  // namespace stag::cli
