// Limits that clients of version 4 run into, as Reasons (base/reason.h): the state core reports
// them with its results, and here they get a name, the client, the export and the XID of the Call,
// by which it is found in a capture.
//
// Thread: any. Only called where something was refused or cut down.
#pragma once

#include <string_view>

#include "base/reason.h"
#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

// `client` 0: unknown. `what` says more, and may be empty. A note that finds no memory is lost.
void note_limit(const Compound& compound, Reason reason, state::ClientId client,
                std::string_view what) noexcept;
// Of the client of a COMPOUND that `limit` kept from something; None: nothing did.
void note_limit(const Compound& compound, Reason reason, state::Limit limit) noexcept;

// How a client came by its session, or why it got none.
void note_session(const Compound& compound, const state::CreateSessionArgs& asked,
                  const state::CreateSessionResult& made) noexcept;
// A client of this address had to go for the one that asks; empty: nobody had to.
void note_evicted(const Compound& compound, std::string_view address) noexcept;

// Names what the limit is set for, such as "the limit of a client".
std::string_view name_of(state::Limit limit);

}  // namespace stag::nfs::nfs4
