#include "rpc/tcp/loop_shard.h"

namespace stag::rpc::tcp {

LoopShard::LoopShard(net::EpollLoop& loop, Service& service, const ServerOptions& options,
                     std::shared_ptr<ByteBudget> budget, std::uint32_t seed)
    : loop_(loop),
      service_(service),
      options_(options),
      budget_(std::move(budget)),
      reverse_xids_(seed) {}

LoopShard::~LoopShard() {
  STAG_CHECK(open_.empty());
}

void LoopShard::adopt(net::AcceptedSocket accepted, net::ConnectionLimits::Place place) {
  if (closing_) return;
  Result<net::TcpSocket, Reason> socket = net::TcpSocket::adopt(loop_, std::move(accepted));
  if (!socket.ok()) return trace(socket.error());
  // RecordStream has the stall limit.
  socket->drop_user_timeout();
  auto connection = std::make_unique<ServerConnection>(
      static_cast<ServerConnection::Owner&>(*this),
      std::make_unique<SocketWire>(*std::move(socket)), std::move(place), service_, options_,
      budget_, tasks_, reverse_xids_.next());
  ServerConnection* key = connection.get();
  open_.emplace(key, std::move(connection));
}

void LoopShard::on_connection_closed(ServerConnection& connection) {
  open_.erase(&connection);
  end_if_empty();
}

void LoopShard::end_if_empty() {
  if (closing_ && open_.empty() && !all_closed_.completed()) all_closed_.complete(Ok{});
}

void LoopShard::end_all_but(std::span<const IpNetwork> networks) {
  for (const auto& open : open_)
    if (!is_allowed(networks, open.second->peer().host)) open.second->close(Reason::PeerNotAllowed);
}

void LoopShard::begin_close() {
  closing_ = true;
  for (const auto& open : open_) open.second->finish();
  end_if_empty();
}

}  // namespace stag::rpc::tcp
