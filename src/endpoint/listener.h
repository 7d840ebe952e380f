// Listener: serves a rpc::Service at an address, on loops of its own or shared ones.
//
//   stag::rpc::Server server;
//   server.add<MYPROC_GREET>(...);
//   auto listener = stag::endpoint::listen(server, {"127.0.0.1", 20049});
//
// A program with several transports calls listen() once for each, with the same Loops.
#pragma once

#include <memory>
#include <vector>

#include "base/address.h"
#include "base/network.h"
#include "endpoint/options.h"
#include "rpc/service.h"

namespace stag::endpoint {

// Its destruction, on a thread that is no loop's, closes its connections; the last Listener of its
// service on its Loops also waits for the Calls in progress there, whichever other object has the
// Loops.
class Listener {
 public:
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  // Where it listens, with the port that the system chose if 0 was asked for.
  const Address& address() const;
  const std::shared_ptr<Loops>& loops() const;
  // From now on clients may connect, and by UDP call, from these networks only; empty: from any.
  // Connections from elsewhere end. Thread: none that is a loop's.
  void allow(const std::vector<IpNetwork>& networks);
  // Replaces rpc::rdma::TransportOptions::stall_limit, or rpc::tcp::StreamLimits::stall, for
  // connections that come from now on. Thread: none that is a loop's.
  void limit_stalls(Duration limit);
  // Replaces max_connections and max_connections_per_peer of rpc::rdma::ServerOptions, or of
  // rpc::tcp::ServerOptions, for connections that come from now on; those that are there stay. The
  // limit of open files counts as with listen(). Thread: none that is a loop's.
  void limit_connections(std::uint32_t all, std::uint32_t per_peer);
  // Replaces rpc::rdma::TransportOptions::max_chunk_bytes for connections that come from now on.
  // Thread: none that is a loop's.
  void limit_chunks(std::uint32_t bytes);
  // Accepts no further connection; those that are there are served. A Listener on UDP, which has no
  // connections, goes on as before. Thread: none that is a loop's.
  void stop_accepting();
  // Begins what the destruction waits for, so that several Listeners close at the same time.
  void begin_close();

 private:
  friend Result<Listener, Reason> listen(rpc::Service& service, const Address& at,
                                         ListenOptions options);
  friend Result<Listener, Reason> listen(rpc::Service& service, int socket, ListenOptions options);
  struct State;
  explicit Listener(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Listens at `at`; its host is an address or name of this machine, :: or 0.0.0.0 for all addresses,
// and not empty (HostNotFound). A port of 0 lets the system choose. Thread: none that is a loop's.
// `service` outlives the Listener and, with shared Loops, its Calls (rpc::Server::active_calls()).
// `max_connections` of its options is at most what the process's limit of open files, as it is
// then, leaves beside other files: half of them, or all but 4096; not with Verbs, whose connections
// take none. Fails with the reason that the address cannot be used.
Result<Listener, Reason> listen(rpc::Service& service, const Address& at,
                                ListenOptions options = {});
// The same on a socket that another program has made, for example systemd: for TCP, and for RDMA by
// software iWARP, a TCP socket that listens; for UDP a socket that is bound. The descriptor is in
// non-blocking mode, and becomes the Listener's even when listen() fails. RDMA devices know no such
// sockets: FabricKind::Verbs fails with AddressNotAvailable.
Result<Listener, Reason> listen(rpc::Service& service, int socket, ListenOptions options = {});

}  // namespace stag::endpoint
