#include "rpc/tcp/server.h"

#include "rpc/tcp/loop_shard.h"

namespace stag::rpc::tcp {

Result<std::unique_ptr<TcpServer>, Reason> TcpServer::listen(net::EpollLoop& loop,
                                                             const Address& at, Service& service,
                                                             std::vector<net::EpollLoop*> loops,
                                                             const ServerOptions& options) {
  Result<net::TcpListener, Reason> listener = net::TcpListener::listen(loop, at);
  if (!listener) return Failure{listener.error()};
  return serve(loop, *std::move(listener), service, std::move(loops), options);
}

std::unique_ptr<TcpServer> TcpServer::serve(net::EpollLoop& loop, net::TcpListener listener,
                                            Service& service, std::vector<net::EpollLoop*> loops,
                                            const ServerOptions& options) {
  if (loops.empty()) loops.push_back(&loop);
  std::unique_ptr<TcpServer> server(
      new TcpServer(loop, std::move(listener), service, std::move(loops), options));
  server->listener_->start([self = server.get()](net::AcceptedSocket accepted) {
    self->on_accept(std::move(accepted));
  });
  return server;
}

TcpServer::TcpServer(net::EpollLoop& loop, net::TcpListener listener, Service& service,
                     std::vector<net::EpollLoop*> loops, const ServerOptions& options)
    : loop_(loop),
      listener_(std::move(listener)),
      local_(listener_->local()),
      allow_(options.allow),
      places_(
          net::ConnectionLimits::make(options.max_connections, options.max_connections_per_peer)),
      budget_(std::make_shared<ByteBudget>(options.max_bytes_all)) {
  XidSeeds seeds(options.seed);
  for (net::EpollLoop* each : loops)
    shards_.push_back(std::make_unique<LoopShard>(*each, service, options, budget_, seeds.next()));
}

TcpServer::~TcpServer() {
  STAG_CHECK(!listener_.has_value());
}

void TcpServer::on_accept(net::AcceptedSocket accepted) {
  if (!is_allowed(allow_, accepted.peer.host))
    return trace(Reason::PeerNotAllowed, to_string(accepted.peer));
  auto place = places_->take(accepted.peer);
  if (!place)
    return trace(
        place.error() == Reason::TooManyConnections ? Reason::RpcTooManyConnections : place.error(),
        to_string(accepted.peer));
  LoopShard* worker = shards_[next_++ % shards_.size()].get();
  if (&worker->loop() == &loop_) return worker->adopt(std::move(accepted), *std::move(place));
  worker->loop().post([worker, moved = std::move(accepted), place = *std::move(place)]() mutable {
    worker->adopt(std::move(moved), std::move(place));
  });
}

// A connection that was accepted before is with its shard already, or gets there before this.
void TcpServer::allow(const std::vector<IpNetwork>& networks) {
  allow_ = networks;
  for (const std::unique_ptr<LoopShard>& shard : shards_)
    shard->loop().post([worker = shard.get(), networks] { worker->end_all_but(networks); });
}

void TcpServer::limit_stalls(Duration limit) {
  for (const std::unique_ptr<LoopShard>& shard : shards_)
    shard->loop().post([worker = shard.get(), limit] { worker->limit_stalls(limit); });
}

Task<void> TcpServer::close() {
  stop_accepting();
  // At the same time: the second that peers have is the same for all.
  for (const std::unique_ptr<LoopShard>& shard : shards_)
    shard->loop().post([worker = shard.get()] { worker->begin_close(); });
  // From here on without memory, which a frame for each shard would take: a close() that had begun
  // at some of them and fails could not be waited for.
  for (const std::unique_ptr<LoopShard>& shard : shards_) {
    co_await resume_on(shard->loop());
    co_await shard->all_closed();
    co_await shard->calls_ended();
    co_await resume_on(loop_);
  }
}

}  // namespace stag::rpc::tcp
