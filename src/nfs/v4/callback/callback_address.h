// Where a client of version 4.0 says that it listens for callbacks (RFC 7530 16.33), and whether
// this server connects there (decision 0042).
#pragma once

#include <optional>
#include <string>

#include "base/address.h"
#include "nfs/proto/nfs4.h"
#include "nfs/v4/compound/callback_networks.h"
#include "rpc/authenticator.h"
#include "rpc/credentials.h"

namespace stag::nfs::nfs4 {

// A client that wants no callbacks leaves out the program or the address.
bool names_callback(const v4::cb_client4& callback);

// TCP at the address `client` that it calls from, or in one of `networks`; nullopt for anything
// else, and for programs outside of the range that clients choose from.
std::optional<Address> callback_address(const v4::cb_client4& callback, const std::string& client,
                                        const CallbackNetworks& networks);

// What callbacks go with (3.3.3): the credential that the client made itself known with; nullopt
// where that is none of this server's.
std::optional<rpc::Credentials> callback_credentials(const rpc::Caller& caller);

}  // namespace stag::nfs::nfs4
