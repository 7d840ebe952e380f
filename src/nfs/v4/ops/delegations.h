// Delegations in OPEN (RFC 8881 10.4, 18.16).
#pragma once

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// Whether the WANT bits of share_access mean something.
bool valid_wants(const v4::OPEN4args& args);
// Why what CLAIM_DELEGATE_CUR and CLAIM_DELEG_CUR_FH claim is not the client's.
v4::nfsstat4 check_delegation_claim(Compound& compound, const ExportObject& file,
                                    const v4::open_claim4& claim);
// What the holder of a write delegation of the file, if that is another client, has changed of it
// and not written yet (RFC 8881 10.4.3): its size. A holder that does not say so in time is asked
// to give the delegation back.
Task<std::optional<std::uint64_t>> size_at_holder(Compound& compound, ExportObject file);
// The delegation of a file that was just opened, or why there is none.
Task<v4::open_delegation4> delegation_for(Compound& compound, const ExportObject& file,
                                          const v4::OPEN4args& args);

}  // namespace stag::nfs::nfs4
