// Trunking (RFC 8881 section 2.10.5): whether another connection leads to the same server, and may
// carry calls of the same client.
#pragma once

#include "nfs/client/protocol/options.h"
#include "nfs/session/session.h"
#include "rpc/channel.h"

namespace stag::nfs::client::nfs4 {

// Asks by both connections who the server is, and binds `other` to the fore channel of the session.
// False where that is another server, or it refuses. Both Channels outlive the Task.
Task<bool> joins_session(rpc::Channel& first, rpc::Channel& other, const session::Session& session,
                         std::uint32_t minor, ProtocolOptions options);
// Of version 4.0, which has no sessions: whether the server by this connection knows the client ID,
// which it does if it has given it out.
Task<bool> knows_client(rpc::Channel& other, v4::clientid4 clientid, ProtocolOptions options);

}  // namespace stag::nfs::client::nfs4
