// Access control lists as the client sees them: what a mode cannot say (types.h has the nouns).
#pragma once

#include <string>

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"

namespace stag::nfs::client {

// As getfacl(1) writes it, with numbers for names: "user:1000:rw-", "mask::r-x".
std::string to_string(const AclEntry& entry);

// Whether an error of acls() says that there are no lists at all: the server has no protocol for
// them, or what it serves cannot keep any.
bool means_no_acls(const Error& error);

}  // namespace stag::nfs::client
