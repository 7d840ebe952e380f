// RPC over TCP: the server's side. One listener, connections spread over loops, each bounded in
// calls, bytes and patience.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/network.h"
#include "net/connection_limits.h"
#include "net/listener.h"
#include "net/loop.h"
#include "rpc/service.h"
#include "rpc/tcp/options.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

class LoopShard;

// Thread: made, closed and destroyed on the listener's loop.
class TcpServer {
 public:
  // `at` with port 0 takes a free port. `loops` get the connections in turn; empty: the listener's.
  // `service` and the loops outlive the server.
  static Result<std::unique_ptr<TcpServer>, Reason> listen(net::EpollLoop& loop, const Address& at,
                                                           Service& service,
                                                           std::vector<net::EpollLoop*> loops = {},
                                                           const ServerOptions& options = {});
  // The same on a listener that is there already, and on which nobody is accepted yet.
  static std::unique_ptr<TcpServer> serve(net::EpollLoop& loop, net::TcpListener listener,
                                          Service& service, std::vector<net::EpollLoop*> loops = {},
                                          const ServerOptions& options = {});
  // After close().
  ~TcpServer();

  // With the real port.
  const Address& local() const { return local_; }
  std::size_t connections() const { return places_->taken(); }

  // From now on clients may connect from these networks only (ServerOptions::allow); connections
  // from elsewhere end.
  void allow(const std::vector<IpNetwork>& networks);
  // Sets the limit of stalls of ServerOptions::stream for connections that come from now on.
  void limit_stalls(Duration limit);
  // Replaces ServerOptions::max_connections and max_connections_per_peer for connections that come
  // from now on.
  void limit_connections(std::size_t all, std::size_t per_peer) { places_->change(all, per_peer); }
  // Connections that are there live on.
  void stop_accepting() { listener_.reset(); }
  // Stops listening, ends every connection in good order, within a second, and waits for the Calls
  // in progress. Replies that were made before arrive; Calls that were not begun do not begin. One
  // that throws std::bad_alloc may be called again.
  Task<void> close();

 private:
  TcpServer(net::EpollLoop& loop, net::TcpListener listener, Service& service,
            std::vector<net::EpollLoop*> loops, const ServerOptions& options);
  void on_accept(net::AcceptedSocket accepted);

  net::EpollLoop& loop_;
  std::optional<net::TcpListener> listener_;
  Address local_;
  std::vector<IpNetwork> allow_;
  std::shared_ptr<net::ConnectionLimits> places_;
  std::shared_ptr<ByteBudget> budget_;
  std::vector<std::unique_ptr<LoopShard>> shards_;
  std::size_t next_ = 0;
};

}  // namespace stag::rpc::tcp
