// The options of connect() and listen(). The defaults are RPC-over-RDMA on software iWARP.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "endpoint/loops.h"
#include "fabric/iwarp/iwarp_options.h"
#include "fabric/verbs/verbs_options.h"
#include "rpc/binding.h"
#include "rpc/client.h"
#include "rpc/credentials.h"
#include "rpc/rdma/options.h"
#include "rpc/service.h"
#include "rpc/tcp/options.h"
#include "rpc/udp/options.h"

namespace stag::fabric {
class VerbsPort;
}  // namespace stag::fabric
namespace stag::fabric::capture {
class Tap;
}  // namespace stag::fabric::capture

namespace stag::endpoint {

// The ports of NFS over RDMA (RFC 8267 section 9) and over TCP; other programs choose their own.
inline constexpr std::uint16_t kRdmaPort = 20049;
inline constexpr std::uint16_t kTcpPort = 2049;

// The transport that a program chooses. rpc::TransportKind says what a Call came by, and knows
// more kinds.
enum class Transport : std::uint8_t { Rdma, Tcp, Udp };
// Where the RDMA operations come from: software iWARP over TCP, or an RDMA device through
// rdma-core, which is looked for when it is needed. Auto, of connectors only: a device where one
// serves the route to the server and the server answers by it, else software iWARP.
enum class FabricKind : std::uint8_t { Iwarp, Verbs, Auto };

// The members of the other transports are ignored. With Iwarp, `rdma.transport.inline_call_size` is
// large enough for a WRITE of 64 KiB if neither it nor `inline_size` is set.
struct ConnectorOptions {
  Transport transport = Transport::Rdma;
  FabricKind fabric = FabricKind::Iwarp;
  rpc::rdma::ChannelOptions rdma{};
  rpc::tcp::ChannelOptions tcp{};
  rpc::udp::ChannelOptions udp{};
  fabric::IwarpOptions iwarp{};
  fabric::VerbsOptions verbs{};
  // Auto: told on the loop, for each Channel that is connected, what it uses, and why it is not
  // Verbs where it is Iwarp.
  std::function<void(FabricKind, Reason)> on_choice{};
};

struct ConnectOptions {
  ConnectorOptions connector{};
  rpc::Binding binding{};  // of the programs to be called; its table outlives the client
  rpc::Credentials credentials{};
  rpc::ClientOptions client{};
  // Serves Calls of the server on this connection (RFC 8167); outlives the client, which waits for
  // those in progress when it goes. Null: such Calls are dropped.
  rpc::Service* reverse = nullptr;
  // The client runs on the first loop. Null: the client has a loop of its own.
  std::shared_ptr<Loops> loops{};
};

struct ListenOptions {
  Transport transport = Transport::Rdma;
  FabricKind fabric = FabricKind::Iwarp;
  rpc::rdma::ServerOptions rdma{};
  rpc::tcp::ServerOptions tcp{};
  rpc::udp::ServerOptions udp{};
  fabric::IwarpOptions iwarp{};
  fabric::VerbsOptions verbs{};
  // Internal: with Verbs, the port that listens at the address already. Null: there is none.
  std::shared_ptr<fabric::VerbsPort> verbs_port{};
  // Internal: captures what goes over RDMA connections, for `stag serve`. Null: nothing is
  // captured.
  std::shared_ptr<fabric::capture::Tap> tap{};
  // Connections are spread over all of them, UDP is served by the first; null: one loop of its own.
  std::shared_ptr<Loops> loops{};
};

}  // namespace stag::endpoint
