// The server's connections on one loop.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "base/completion.h"
#include "base/task_group.h"
#include "net/loop.h"
#include "net/socket.h"
#include "rpc/tcp/connection.h"
#include "rpc/tcp/server.h"
#include "rpc/xid_seeds.h"

namespace stag::rpc::tcp {

// Thread: its loop, from the first adopt() until it is closed and its Calls have ended.
class LoopShard final : private ServerConnection::Owner {
 public:
  LoopShard(net::EpollLoop& loop, Service& service, const ServerOptions& options,
            std::shared_ptr<ByteBudget> budget, std::uint32_t seed);
  ~LoopShard();

  net::EpollLoop& loop() const { return loop_; }
  // Serves the connection, which keeps its place to its end.
  void adopt(net::AcceptedSocket accepted, net::ConnectionLimits::Place place);
  // Ends the connections of peers that are in none of these networks; empty: all may stay.
  void end_all_but(std::span<const IpNetwork> networks);
  // The time without progress after which connections are closed that it adopts from now on.
  void limit_stalls(Duration limit) {
    options_.stream.stall = options_.stream.whole_record = limit;
  }
  // Ends every connection in good order, and serves none that comes later. Asks for no memory; once
  // more it has no effect.
  void begin_close();
  // co_await all_closed(): suspends until begin_close() has ended every connection.
  Completion<Ok>& all_closed() { return all_closed_; }
  // co_await calls_ended(): suspends until the Calls in progress have ended, which may outlive
  // their connections.
  auto calls_ended() { return tasks_.join(); }

 private:
  void on_connection_closed(ServerConnection& connection) override;
  void end_if_empty();

  net::EpollLoop& loop_;
  Service& service_;
  ServerOptions options_;
  const std::shared_ptr<ByteBudget> budget_;
  std::unordered_map<ServerConnection*, std::unique_ptr<ServerConnection>> open_;
  XidSeeds reverse_xids_;
  TaskGroup tasks_;
  bool closing_ = false;
  Completion<Ok> all_closed_;
};

}  // namespace stag::rpc::tcp
