// Credentials by Kerberos: who the caller is, is proven to the server, and the server's name to the
// caller.
//
//   auto credentials = stag::endpoint::kerberos("server.example.org", gss::Service::privacy);
//   auto client = stag::endpoint::connect({"server.example.org", 20049},
//                                         {.credentials = *credentials});
#pragma once

#include <string>

#include "base/result.h"
#include "gss/credential.h"
#include "gss/mechanism.h"
#include "rpc/credentials.h"

namespace stag::endpoint {

// `host`: the server's name in Kerberos, as in nfs/HOST; `service`: whether messages are protected,
// too. The tickets are those of the process's credential cache or client keytab, looked for with
// the first Call; a Call fails with a Reason that says so where there are none. Good for the calls
// of one loop to one server. Fails where this library cannot be used. May block.
Result<rpc::Credentials, gss::Error> kerberos(const std::string& host, gss::Service service);

}  // namespace stag::endpoint
