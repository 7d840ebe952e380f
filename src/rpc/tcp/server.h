// RPC over TCP: the server's side. One listener, connections spread over loops, each bounded in
// calls, bytes and patience.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/network.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/peer_places.h"
#include "rpc/service.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

struct ServerOptions {
  std::size_t max_connections = 4096;  // over all loops; one more is closed at once
  // From one address; 0: net::PeerPlaces::usual().
  std::size_t max_connections_per_peer = 0;
  // Whose connections are taken; empty: everybody's.
  std::vector<IpNetwork> allow{};
  // In progress on one connection; at that many it is not read until one ends.
  std::size_t max_calls = 32;
  // Bytes of the Calls and Replies of one connection, and of all together; what is beyond waits
  // (rpc/tcp/budget.h).
  std::uint64_t max_bytes = 64u << 20;
  std::uint64_t max_bytes_all = 1u << 30;
  StreamLimits stream{.records = {},
                      .queued = 8 << 20,
                      .stall = std::chrono::seconds(60),
                      .whole_record = std::chrono::seconds(60)};
};

class Worker;

// Thread: made, closed and destroyed on the listener's loop.
class TcpServer {
 public:
  // `at` with port 0 takes a free port. `loops` get the connections in turn; empty: the listener's.
  // `service` and the loops outlive the server.
  static Result<std::unique_ptr<TcpServer>, Reason> listen(net::EpollLoop& loop, const Address& at,
                                                           Service& service,
                                                           std::vector<net::EpollLoop*> loops = {},
                                                           const ServerOptions& options = {});
  // After close().
  ~TcpServer();

  // With the real port.
  const Address& local() const { return local_; }
  std::size_t connections() const { return places_->taken(); }

  // Stops listening, ends every connection and waits for the Calls in progress.
  Task<void> close();

 private:
  TcpServer(net::EpollLoop& loop, net::TcpListener listener, Service& service,
            std::vector<net::EpollLoop*> loops, const ServerOptions& options);
  void on_accept(net::AcceptedSocket accepted);

  net::EpollLoop& loop_;
  std::optional<net::TcpListener> listener_;
  Address local_;
  ServerOptions options_;
  std::shared_ptr<net::PeerPlaces> places_;
  std::shared_ptr<ByteBudget> budget_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_ = 0;
};

}  // namespace stag::rpc::tcp
