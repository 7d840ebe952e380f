// The credential of a client's machine, where it protects the client ID (SP4_MACH_CRED, RFC 8881
// 2.10.8.3): what nobody does without it, and what it does though an export wants another one.
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// NFS4_OK, or WRONG_CRED: the client ID is protected, and the caller is not its machine.
v4::nfsstat4 check_machine(const Compound& compound, v4::clientid4 clientid);
v4::nfsstat4 check_machine(const Compound& compound, const v4::sessionid4& sessionid);

// Whether the caller proves as much of itself as the client did for its client ID: by Kerberos with
// integrity, if that was by Kerberos.
bool proves_as_much_as_its_client(const Compound& compound);

// The operations, bit n for operation n, that the machine of the session's client may do with any
// security flavor; 0 where the caller is not that machine.
std::uint64_t allowed_to_machine(const Compound& compound);

}  // namespace stag::nfs::nfs4
