// Access control lists as the client sees them: those of NFSACL (proto/nfsacl.x), in canonical
// order and without what is on the wire only. An entry's `type` is one of ACL_USER_OBJ to
// ACL_OTHER_OBJ; `id` is that of a named user or group, else 0.
#pragma once

#include <string>
#include <vector>

#include "nfs/client/attributes.h"
#include "nfs/client/protocol/error.h"
#include "nfs/proto/nfsacl.h"

namespace stag::nfs::client {

using AclEntry = nfsacl::aclent;

struct Acls {
  std::vector<AclEntry> access;    // of a file or directory with nothing but a mode: three entries
  std::vector<AclEntry> defaults;  // what new objects in a directory begin with; may be empty
  bool beyond_mode() const { return access.size() > 3 || !defaults.empty(); }
};

// As getfacl(1) writes it, with numbers for names: "user:1000:rw-", "mask::r-x".
std::string to_string(const AclEntry& entry);

// Whether an error of acls() says that there are no lists at all: the server does not speak NFSACL,
// or what it serves cannot keep any.
bool means_no_acls(const Error& error);

}  // namespace stag::nfs::client
