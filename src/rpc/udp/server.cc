#include "rpc/udp/server.h"

#include <algorithm>

#include "base/failure.h"
#include "oncrpc/message.h"
#include "rpc/late_xid.h"
#include "rpc/observer.h"

namespace stag::rpc::udp {

std::unique_ptr<UdpServer> UdpServer::serve(net::EpollLoop& loop, net::UdpSocket socket,
                                            Service& service, const ServerOptions& options) {
  return std::unique_ptr<UdpServer>(new UdpServer(loop, std::move(socket), service, options));
}

UdpServer::UdpServer(net::EpollLoop& loop, net::UdpSocket socket, Service& service,
                     const ServerOptions& options)
    : loop_(loop),
      socket_(std::move(socket)),
      service_(service),
      options_(options),
      local_(socket_.local()),
      shares_(options.max_calls),
      receiver_(
          socket_, loop, options.pause,
          [this](Bytes message, const net::Datagram& datagram) { on_datagram(message, datagram); },
          [this](Reason reason) { trace(reason, "udp " + to_string(local_)); }) {}

UdpServer::~UdpServer() {
  STAG_CHECK(socket_.closed());
}

void UdpServer::on_datagram(Bytes message, const net::Datagram& datagram) {
  const Address peer = datagram.from.address();
  const auto drop = [&peer](Reason reason) { trace(reason, "udp " + to_string(peer)); };
  if (!is_allowed(options_.allow, peer.host)) return drop(Reason::PeerNotAllowed);
  const Result<oncrpc::MessageStart, Reason> start = oncrpc::peek(message);
  if (!start) return drop(start.error());
  // Not answered in any way: two servers that were made to talk to each other would not stop.
  if (start->type != oncrpc::MessageType::CALL) return drop(Reason::RpcReplyUnmatched);
  CallShares::Place place = shares_.take(peer.host);
  if (!place)
    return trace_late(Reason::RpcTooManyCalls, "udp " + to_string(peer), LateXid(message));
  auto origin = std::make_shared<Origin>();
  origin->peer = peer;
  origin->local = {datagram.at.address().host, local_.port};
  origin->transport = TransportKind::Udp;
  origin->netid = peer.host.find(':') == std::string::npos ? "udp" : "udp6";
  origin->loop = &loop_;
  if (Observer* const observer = tracing(service_.observer()))
    observer->on_whole_call(*origin, WholeCall::of(message));
  tasks_.add(answer(std::move(place), std::move(origin), Buffer::copy_of(message), datagram.from,
                    datagram.at));
}

Task<void> UdpServer::answer(CallShares::Place place, std::shared_ptr<const Origin> origin,
                             Buffer message, net::SocketAddress to, net::SocketAddress from) {
  // Goes with this scope, before close() hears that the Call has ended.
  const CallShares::Place held = std::move(place);
  // A sender that forges the source address of its Calls has that host flooded.
  const std::size_t fair = std::max(kSmallReply, kMostReplyPerCall * message.size());
  IncomingCall call;
  call.origin = std::move(origin);
  call.payload = std::move(message);
  const std::size_t most = std::min(fair, options_.max_reply);
  call.reply_room = {.inline_max = most, .chunk_max = 0};
  try {
    const std::optional<OutgoingReply> reply = co_await service_.serve(call);
    if (!reply) co_return;
    const Rope leaving = reply->stream.rope();
    const bool sent = !socket_.closed() && send(leaving, most, to, from);
    if (Observer* const observer = tracing(service_.observer()))
      observer->on_whole_reply(*call.origin, WholeReply::of(leaving, sent));
  } catch (...) {
    // No answer, as if the datagram had been lost: the client sends it again.
    trace_exception(Reason::RpcHandlerFailed, "udp");
  }
}

bool UdpServer::send(const Rope& reply, std::size_t most, const net::SocketAddress& to,
                     const net::SocketAddress& from) {
  const auto drop = [&](Reason reason) {
    trace_late(reason, "udp " + to_string(to.address()), LateXid(reply));
    return false;
  };
  if (reply.size() > most) return drop(Reason::RpcReplyTooLong);
  const Result<Ok, Reason> sent = socket_.send_to(reply.flatten().bytes(), to, from);
  return sent || drop(sent.error());
}

Task<void> UdpServer::close() {
  socket_.close();
  co_await tasks_.join();
}

}  // namespace stag::rpc::udp
