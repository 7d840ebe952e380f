// Delegations in OPEN (RFC 8881 10.4, 18.16).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Whether share_access, but for what it opens for, and the delegation that is claimed again mean
// something.
bool valid_wants(const v4::OPEN4args& args);
// Why what CLAIM_DELEGATE_CUR and CLAIM_DELEG_CUR_FH claim is not the client's.
v4::nfsstat4 check_delegation_claim(Compound& compound, const ExportObject& file,
                                    const v4::open_claim4& claim);
// What the holder of a write delegation of the file, if that is another client, has changed of it
// and not written yet (RFC 8881 10.4.3): its size. A holder that does not say so in time is asked
// to give the delegation back.
Task<std::optional<std::uint64_t>> size_at_holder(Compound& compound, ExportObject file);
// The delegation of a file that was just opened, or why there is none; fails where a client claims
// one again, after a restart, that is in the way of others (10.2.1).
Task<Result<v4::open_delegation4, v4::nfsstat4>> delegation_for(Compound& compound,
                                                                const ExportObject& file,
                                                                const v4::OPEN4args& args);
// RENEW of a client of version 4.0 that holds delegations (RFC 7530 16.28.5): CB_PATH_DOWN where
// its callbacks fail. Finds out in the background how it is now, for the next RENEW.
v4::nfsstat4 check_callback_path(Compound& compound);

}  // namespace stag::nfs::nfs4
