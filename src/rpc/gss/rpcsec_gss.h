// RPCSEC_GSS (RFC 2203) at both ends of rpc: the Authenticator of a Server and the ClientSecurity
// behind a Client's Credentials. What they know of Kerberos is a gss::Acceptor or gss::Initiator:
//
//   auto acceptor = gss::krb5::acceptor({.keytab = "/etc/krb5.keytab"});
//   server.add(rpc::rpcsec_gss({.acceptor = *std::move(acceptor), .ids = ...}));
//
//   auto initiator = gss::krb5::initiator({.host = "server.example.org"});
//   auto credentials = rpc::Credentials::secured(
//       rpc::rpcsec_gss({.initiator = *std::move(initiator), .service = gss::Service::privacy}));
//
// Served is version 1; a context's window is 256 sequence numbers (RFC 2203 section 5.3.3.1).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/eventual.h"
#include "base/executor.h"
#include "base/inline_vector.h"
#include "base/loop.h"
#include "base/result.h"
#include "gss/credential.h"
#include "gss/mechanism.h"
#include "rpc/authenticator.h"
#include "rpc/client_security.h"

namespace stag::rpc {

// What a name service makes of a principal.
struct UserIds {
  std::uint32_t uid = Caller::kNobody;
  std::uint32_t gid = Caller::kNobody;
  InlineVector<std::uint32_t, 16> gids{};  // supplementary groups, as many as there are
};

// Why there are none, so that a context is not set up.
enum class NoUserIds : std::uint8_t {
  Refused,  // the principal gets no context
  NotNow    // the name service cannot say yet: the client shall begin anew
};

// Yields the ids of `principal`, which outlives the Eventual. Called once a context, on `loop`;
// thread: several loops call it at once. Blocking work belongs on other threads (offloaded_to()),
// there as the work of `client`, which is the same for all connections of a host
// (Executor::Job::client). A client waits 25 seconds for its context as a rule (libtirpc).
using PrincipalToIds = std::function<Eventual<Result<UserIds, NoUserIds>>(
    Loop& loop, const std::string& principal, const void* client)>;

struct GssServerOptions {
  std::shared_ptr<gss::Acceptor> acceptor{};
  PrincipalToIds ids{};  // empty: every principal is nobody
  // Where messages above `large` bytes are protected, one of a context at a time, as the work of
  // the host that the context belongs to. Null: the threads of Loop::offload(), where hosts take no
  // turns. Outlives the Server.
  Executor* executor = nullptr;
  // Where tokens are accepted, one of an address at a time: that may take as long as a keytab, or
  // another process, does not answer, and the messages of those who have a context do not wait for
  // it. Null: where messages are protected.
  std::shared_ptr<Executor> tokens{};
  std::size_t large = 16 << 10;
  // Contexts that are kept, one for each user of each client. Beyond, that one goes which was
  // unused for longest, of the address that has most.
  std::size_t contexts = 8192;
  std::size_t half_open = 512;  // contexts whose clients have been asked for another token
};

// The Authenticator of flavor RPCSEC_GSS. The Caller of an accepted Call has the pseudo-flavor of
// the service it used (oncrpc::AuthFlavor::KRB5, KRB5I, KRB5P) and the principal as its name.
std::unique_ptr<Authenticator> rpcsec_gss(GssServerOptions options);

struct GssClientOptions {
  std::shared_ptr<gss::Initiator> initiator{};
  gss::Service service = gss::Service::none;
};

// Sets its context up with the first Call, by the program and version of that Call, so that one
// object is good for one server process. Belongs to the loop of the Channels that use it. A context
// that the server has lost, or that has expired, is replaced without failing a Call, as is one
// whose window would move past a Call in progress. end() tells the server that the context is no
// longer used (RFC 2203 section 5.4).
std::shared_ptr<ClientSecurity> rpcsec_gss(GssClientOptions options);

}  // namespace stag::rpc
