// Access control lists of the client (protocol/types.h has the types): what they say, from one form
// to the other, as text; and errors. Functions of values, for any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"

namespace stag::nfs::client {

// As getfacl(1) writes it, with numeric IDs in place of names: "user:1000:rw-", "mask::r-x".
std::string to_string(const AclEntry& entry);
// As nfs4_getfacl(1) writes it: "A:g:1000:rxtcy". The name is as the server sent it: any bytes.
std::string to_string(const Nfs4Ace& entry);

// The access list that says what the nine bits of `mode` do.
Acls acls_of_mode(std::uint32_t mode);
// The list of version 4 with the same meaning, users and groups being numbers; nullopt: these are
// no complete lists. Without an access list, the one that `mode` stands for.
std::optional<Nfs4Acl> to_nfs4_acl(const Acls& acls, bool directory, std::uint32_t mode = 0);
// The lists of POSIX that allow no more than `acl`, of which only reading, writing and executing
// are kept; nullopt where there are none: a name that is no number, an audit, an inheritance that
// ends.
std::optional<Acls> to_posix_acls(const Nfs4Acl& acl, bool directory);
// Whether the list says more than a mode does.
bool beyond_mode(const Nfs4Acl& acl, bool directory);

// Whether an error of FileSystem::acls() means that there are no lists at all: the server does not
// speak NFSACL, or its file system keeps none. By version 4 it may also mean that POSIX has no form
// for the list: nfs4_acl() tells these apart.
bool means_no_acls(const Error& error);

}  // namespace stag::nfs::client
