// Access control lists of the client: text and errors (protocol/types.h has the types). Functions
// of values, for any thread.
#pragma once

#include <string>

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"

namespace stag::nfs::client {

// As getfacl(1) writes it, with numeric IDs in place of names: "user:1000:rw-", "mask::r-x".
std::string to_string(const AclEntry& entry);

// Whether an error of FileSystem::acls() means that there are no lists at all: the server does not
// speak NFSACL, or its file system keeps none.
bool means_no_acls(const Error& error);

}  // namespace stag::nfs::client
