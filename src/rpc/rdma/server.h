// RPC-over-RDMA in front of an rpc::Service: accepts connections on a fabric, on any number of
// loops, and serves the Calls they carry. Connections of one loop share nothing with those of
// another but the byte budget.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.h"
#include "rpc/rdma/link.h"
#include "rpc/rdma/options.h"
#include "rpc/xid_seeds.h"

namespace stag::rpc::rdma {

class Server final : private fabric::Acceptor {
 public:
  // `service` outlives the Server and its Calls.
  Server(Service& service, ServerOptions options = {});
  // Closed, or never listened.
  ~Server();

  // Listens on `address`. One fabric a Server; the connections are on its accepting loops. Yields
  // the address with its real port.
  Result<Address, Reason> listen(fabric::Fabric& fabric, const Address& address);

  // On the fabric's loop. From now on clients may connect from these networks only
  // (ServerOptions::allow); connections from elsewhere end.
  void allow(const std::vector<IpNetwork>& networks);
  // On the fabric's loop. Of connections that come from now on (TransportOptions::stall_limit).
  void limit_stalls(Duration limit) { answer_.stall_limit = limit; }
  // The same of ServerOptions::max_connections and max_connections_per_peer.
  void limit_connections(std::uint32_t all, std::uint32_t per_peer) {
    if (listener_ != nullptr) listener_->limit_connections(all, per_peer);
  }
  // The same of TransportOptions::max_chunk_bytes.
  void limit_chunks(std::uint32_t bytes) {
    max_chunk_bytes_.store(bytes, std::memory_order_relaxed);
  }
  // On the fabric's loop. Connections that are there live on.
  void stop_accepting() { listener_.reset(); }
  // On the fabric's loop: stops accepting, ends every connection and completes when all are gone.
  // Calls being served run on; their Replies go nowhere.
  Task<void> close();

 private:
  // The connections of one loop; touched on its thread only.
  class LoopShard;

  Result<fabric::ConnectOptions, Reason> on_connect_request(
      const fabric::ConnectRequest& request) override;
  void on_connection(std::unique_ptr<fabric::Connection> connection) override;
  LoopShard& shard_of(Loop& loop);

  Service& service_;
  const ServerOptions options_;
  std::vector<IpNetwork> allow_;  // on the fabric's loop
  XidSeeds seeds_;                // of the shards' own
  std::shared_ptr<ByteBudget> budget_;
  fabric::ConnectOptions answer_;  // to every request
  std::atomic<std::uint32_t> max_chunk_bytes_ = options_.transport.max_chunk_bytes;
  Loop* loop_ = nullptr;
  std::vector<std::unique_ptr<LoopShard>> shards_;
  std::unique_ptr<fabric::Listener> listener_;
};

}  // namespace stag::rpc::rdma
