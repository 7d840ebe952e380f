// Delegations in OPEN (RFC 8881 10.4, 18.16).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// The delegation of a file that was just opened, or why there is none; fails where a client claims
// one again, after a restart, that is in the way of others (10.2.1).
Task<Result<v4::open_delegation4, v4::nfsstat4>> delegation_for(Compound& compound,
                                                                const ExportObject& file,
                                                                const v4::OPEN4args& args);

// The client has put a filehandle of this export, of which it is not decided yet whether it is open
// to it: it cannot give back what it is asked for.
void put_off_recalls(const Compound& compound, const Export& of);

}  // namespace stag::nfs::nfs4
