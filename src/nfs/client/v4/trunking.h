// Session trunking (RFC 8881 section 2.10.5): whether another connection leads to the server of a
// session, and may carry its calls.
#pragma once

#include "nfs/client/protocol/options.h"
#include "nfs/session/session.h"
#include "rpc/channel.h"

namespace stag::nfs::client::nfs4 {

// Asks by both connections who the server is, and binds `other` to the fore channel of the session.
// False where that is another server, or it refuses. Both Channels outlive the Task.
Task<bool> joins_session(rpc::Channel& first, rpc::Channel& other, const session::Session& session,
                         std::uint32_t minor, ProtocolOptions options);

}  // namespace stag::nfs::client::nfs4
