#include "fabric/iwarp/iwarp_listener.h"

#include <new>
#include <utility>

#include "fabric/iwarp/linger.h"

namespace stag::fabric {

struct IwarpListener::Peer {
  Peer(net::TcpSocket socket, net::ConnectionLimits::Place its)
      : setup(std::move(socket)), place(std::move(its)) {}
  PassiveSetup setup;
  net::ConnectionLimits::Place place;
};

namespace {

// What is told of a peer that goes may find no memory: it goes all the same.
void trace_peer(Reason reason, const net::TcpSocket& socket) noexcept {
  try {
    trace(reason, to_string(socket.peer()), "connection request");
  } catch (const std::bad_alloc&) {
    trace(reason, {}, "connection request");
  }
}

}  // namespace

std::unique_ptr<Listener> IwarpListener::open(std::shared_ptr<const IwarpOptions> options,
                                              net::EpollLoop& loop,
                                              std::vector<net::EpollLoop*> accepting,
                                              net::TcpListener tcp, ListenOptions listen,
                                              Acceptor& acceptor) {
  return std::unique_ptr<Listener>(new IwarpListener(std::move(options), loop, std::move(accepting),
                                                     std::move(tcp), listen, acceptor));
}

IwarpListener::IwarpListener(std::shared_ptr<const IwarpOptions> options, net::EpollLoop& loop,
                             std::vector<net::EpollLoop*> accepting, net::TcpListener tcp,
                             ListenOptions listen, Acceptor& acceptor)
    : options_(std::move(options)),
      loop_(loop),
      accepting_(std::move(accepting)),
      tcp_(std::move(tcp)),
      listen_(listen),
      acceptor_(acceptor),
      places_(
          net::ConnectionLimits::make(listen_.max_connections, listen_.max_connections_per_peer)),
      gate_(std::make_shared<Gate>()) {
  tcp_.start([this](net::AcceptedSocket accepted) { on_accept(std::move(accepted)); });
}

IwarpListener::~IwarpListener() {
  const BriefLock lock(gate_->mutex);
  gate_->closed = true;
}

void IwarpListener::on_accept(net::AcceptedSocket accepted) {
  auto place = take_place(accepted.peer);
  if (!place) return trace(place.error(), to_string(accepted.peer));
  const Address from = accepted.peer;
  auto socket = net::TcpSocket::adopt(loop_, std::move(accepted), options_->tcp);
  if (!socket) return trace(socket.error(), to_string(from));
  if (half_open_.size() >= options_->max_half_open) drop_oldest();
  // None of them is without its timer.
  std::list<Peer> fresh;
  const auto peer = fresh.emplace(fresh.end(), *std::move(socket), *std::move(place));
  peer->setup.start(listen_.setup_timeout, [this, peer](Reason reason) {
    // Its timer has ended: whatever throws here, it goes.
    std::list<Peer> ended;
    ended.splice(ended.end(), half_open_, peer);
    reason == Reason::None ? on_request(*peer) : trace_peer(reason, peer->setup.socket());
  });
  half_open_.splice(half_open_.end(), fresh);
}

// A peer that only connects cannot keep others out: the oldest such connection goes first. Not for
// one whose own address has all its places: it would get none.
Result<net::ConnectionLimits::Place, Reason> IwarpListener::take_place(const Address& peer) {
  auto place = places_->take(peer);
  const bool all_taken = !place && place.error() == Reason::TooManyConnections;
  if (!all_taken || half_open_.empty() || places_->has_its_share(peer)) return place;
  drop_oldest();
  return places_->take(peer);
}

void IwarpListener::drop_oldest() {
  trace_peer(Reason::SetupUnfinished, half_open_.front().setup.socket());
  half_open_.pop_front();
}

void IwarpListener::reject(Peer& peer, const iwarp::MpaFrame& request) {
  const iwarp::MpaOptions mpa = mpa_options(*options_, ConnectOptions{});
  peer.setup.answer(iwarp::make_reject(mpa, request, {}));
  linger(std::move(peer.setup.socket()), {}, std::move(peer.place));
}

void IwarpListener::on_request(Peer& peer) {
  net::TcpSocket& socket = peer.setup.socket();
  const auto request = peer.setup.request();
  if (!request) return trace_peer(request.error(), socket);
  const auto wishes =
      acceptor_.on_connect_request({socket.peer(), socket.local(), request->private_data});
  if (!wishes) {
    trace(Reason::ConnectionRejected, to_string(socket.peer()), to_string(wishes.error()));
    return reject(peer, *request);
  }
  const iwarp::MpaOptions mpa = mpa_options(*options_, *wishes);
  const auto negotiated = iwarp::judge_request(mpa, *request);
  if (!negotiated) return trace_peer(negotiated.error(), socket);
  if (wishes->private_data.size() > kMostPrivateData) {
    trace(Reason::PrivateDataTooLong, to_string(socket.peer()));
    return reject(peer, *request);
  }
  if (!peer.setup.answer(iwarp::make_reply(mpa, *request, *negotiated, wishes->private_data)))
    return trace_peer(Reason::SetupUnfinished, socket);
  IwarpSetup setup;
  setup.options = options_;
  setup.socket = std::move(socket);
  setup.negotiated = *negotiated;
  setup.peer_private_data.assign(request->private_data.begin(), request->private_data.end());
  setup.receive = wishes->receive;
  setup.stall_limit = wishes->stall_limit;
  setup.place = std::move(peer.place);
  deliver(std::move(setup));
}

void IwarpListener::deliver(IwarpSetup setup) {
  net::EpollLoop& other = *accepting_[next_loop_++ % accepting_.size()];
  if (&other == &loop_)
    return acceptor_.on_connection(std::make_unique<IwarpConnection>(std::move(setup)));
  // Before the lambda: its captures are made in no order that may be relied on.
  net::AcceptedSocket released = setup.socket.release();
  other.post([&other, gate = gate_, &acceptor = acceptor_, released = std::move(released),
              rest = std::move(setup)]() mutable {
    auto socket = net::TcpSocket::adopt(other, std::move(released), rest.options->tcp);
    if (!socket) return trace(socket.error());
    rest.socket = *std::move(socket);
    auto connection = std::make_unique<IwarpConnection>(std::move(rest));
    const BriefLock lock(gate->mutex);
    if (!gate->closed) acceptor.on_connection(std::move(connection));
  });
}

}  // namespace stag::fabric
