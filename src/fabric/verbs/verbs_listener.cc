#include "fabric/verbs/verbs_listener.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {

// Of an answer; a request of InfiniBand carries no more.
constexpr std::size_t kMostPrivateData = 56;
// Of a rejection: the kernel says nothing for a listener that goes.
constexpr std::uint8_t kTurnedDown = 1;

net::SocketAddress bound_address(const sockaddr& from) {
  const bool six = from.sa_family == AF_INET6;
  return {&from, static_cast<socklen_t>(six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in))};
}

Address host_of(const sockaddr& from) {
  return bound_address(from).address();
}

}  // namespace

// What connections that are set up on other loops need when the listener goes: whether it has.
// Held while one is delivered, so that the acceptor is not called after the listener's end.
struct VerbsListener::Gate {
  std::recursive_mutex mutex;
  bool closed = false;
};

namespace {

// A request on its way to become a connection, on the connection's loop. The timer that limits it
// owns it, so that it ends with the loop at the latest.
class PassiveSetup : public std::enable_shared_from_this<PassiveSetup> {
 public:
  using Deliver = UniqueFunction<void(std::unique_ptr<Connection>)>;
  PassiveSetup(net::EpollLoop& loop, Deliver deliver) : loop_(loop), deliver_(std::move(deliver)) {}

  Result<Ok, Reason> begin(const std::shared_ptr<VerbsShared>& shared, CmId id,
                           const CmNotice& request, const ConnectOptions& answer,
                           net::ConnectionLimits::Place place, Duration limit) {
    auto here = VerbsLoop::of(shared, loop_);
    if (!here) return Failure{here.error()};
    if (!(*here)->adopt(id)) return Failure{Reason::VerbsFailed};
    auto made = VerbsConnection::make(*std::move(here), std::move(id), false, answer);
    if (!made) return Failure{made.error()};
    connection_ = *std::move(made);
    connection_->keep(std::move(place));
    limit_ = loop_.after(limit, [self = shared_from_this()] {
      trace(Reason::SetupUnfinished, to_string(self->connection_->peer_address()));
      self->connection_.reset();
    });
    auto begun = connection_->set_up(answer, &request, [this](Reason reason) { on_setup(reason); });
    if (begun) return begun;
    limit_.cancel();
    connection_.reset();
    return begun;
  }

 private:
  // Inside of an event of the connection, which therefore goes on its way in a later turn.
  void on_setup(Reason reason) {
    loop_.post([self = shared_from_this(), reason] {
      self->limit_.cancel();
      if (self->connection_ == nullptr) return;
      if (reason == Reason::None) return self->deliver_(std::move(self->connection_));
      trace(reason, "rdma", "connection request");
      self->connection_.reset();
    });
  }

  net::EpollLoop& loop_;
  Deliver deliver_;
  std::unique_ptr<VerbsConnection> connection_;
  Timer limit_;
};

}  // namespace

VerbsListener::VerbsListener(std::shared_ptr<VerbsShared> shared, std::shared_ptr<VerbsLoop> loop,
                             std::vector<net::EpollLoop*> accepting, ListenOptions listen,
                             Acceptor& acceptor)
    : shared_(std::move(shared)),
      loop_(std::move(loop)),
      accepting_(std::move(accepting)),
      listen_(listen),
      acceptor_(acceptor),
      places_(
          net::ConnectionLimits::make(listen_.max_connections, listen_.max_connections_per_peer)),
      gate_(std::make_shared<Gate>()) {}

VerbsListener::~VerbsListener() {
  const std::lock_guard lock(gate_->mutex);
  gate_->closed = true;
}

Result<std::unique_ptr<Listener>, Reason> VerbsListener::open(
    const std::shared_ptr<VerbsShared>& shared, net::EpollLoop& loop,
    std::vector<net::EpollLoop*> accepting, const Address& at, ListenOptions listen,
    Acceptor& acceptor, const std::shared_ptr<VerbsPort>& port) {
  auto here = VerbsLoop::of(shared, loop, port != nullptr ? port->channel() : nullptr);
  if (!here) return Failure{here.error()};
  std::unique_ptr<VerbsListener> made(
      new VerbsListener(shared, *std::move(here), std::move(accepting), listen, acceptor));
  const auto bound = made->bind(at, port.get());
  if (!bound) return Failure{bound.error()};
  return std::unique_ptr<Listener>(std::move(made));
}

Result<Ok, Reason> VerbsListener::bind(const Address& at, VerbsPort* port) {
  auto address = net::numeric_address(at);
  if (!address) {
    const auto resolved = net::resolve_blocking(at);
    if (!resolved) return Failure{resolved.error()};
    address = resolved->front();
  }
  at_ = *address;
  if (port == nullptr) return listen();
  CmId id = port->take();
  if (!loop_->has(id)) return Failure{Reason::VerbsFailed};
  // Before any event of it is looked at.
  id.belongs_to(*this);
  return keep(std::move(id));
}

Result<Ok, Reason> VerbsListener::listen() {
  auto made = loop_->make_id(*this);
  if (!made) return Failure{made.error()};
  CmId id = *std::move(made);
  const auto listening = listen_at(loop_->functions(), id, at_);
  if (!listening) return listening;
  return keep(std::move(id));
}

Result<Ok, Reason> VerbsListener::keep(CmId id) {
  if (!loop_->allows(id->verbs) || !loop_->finds_allowed())
    return Failure{Reason::VerbsDeviceElsewhere};
  const net::SocketAddress bound = bound_address(id->route.addr.src_addr);
  if (at_.port() == 0) at_ = bound;
  local_ = bound.address();
  id_ = std::move(id);
  return Ok{};
}

void VerbsListener::on_removed() {
  try_again_later();
  // The kernel keeps what is left of the device as long as there is an id.
  id_ = {};
  trouble_ = Reason::VerbsDeviceRemoved;
  trace(trouble_, to_string(local_), "listener; it tries to listen again");
}

void VerbsListener::try_again_later() {
  again_ = loop_->loop().after(loop_->options().listen_again_after, [this] { try_again(); });
}

void VerbsListener::try_again() {
  // First: what finds no memory below is tried again, too.
  try_again_later();
  const auto listens = listen();
  const Reason before = std::exchange(trouble_, listens ? Reason::None : listens.error());
  if (!listens) {
    if (trouble_ != before) trace(trouble_, to_string(local_), "listener; it tries again");
    return;
  }
  again_.cancel();
  trace(Reason::VerbsListensAgain, to_string(local_));
}

void VerbsListener::on_cm(CmNotice notice) {
  if (notice.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    return on_request(loop_->own_requested(notice.id), std::move(notice));
  }
  if (notice.type == RDMA_CM_EVENT_DEVICE_REMOVAL) on_removed();
}

void VerbsListener::on_request(CmId id, CmNotice notice) {
  const Address peer = host_of(id->route.addr.dst_addr);
  const Address local = host_of(id->route.addr.src_addr);
  const auto reject = [&](Reason reason, std::string_view why) {
    trace(reason, to_string(peer), why);
    loop_->functions().reject(id.get(), &kTurnedDown, sizeof kTurnedDown);
  };
  // A listener at every address hears requests by every device.
  if (!loop_->allows(id->verbs))
    return reject(Reason::VerbsOtherDevice, loop_->functions().get_device_name(id->verbs->device));
  auto place = places_->take(peer);
  if (!place) return reject(place.error(), {});
  auto answer = acceptor_.on_connect_request({peer, local, notice.private_data()});
  if (!answer) return reject(Reason::ConnectionRejected, to_string(answer.error()));
  if (answer->private_data_size() > kMostPrivateData) return reject(Reason::PrivateDataTooLong, {});
  net::EpollLoop& there = *accepting_[next_loop_++ % accepting_.size()];
  // The listener may go before its connection is there.
  id.belongs_to(CmUser::nobody());
  auto setup = std::make_shared<PassiveSetup>(
      there, [gate = gate_, &acceptor = acceptor_](std::unique_ptr<Connection> connection) {
        const std::lock_guard lock(gate->mutex);
        if (!gate->closed) acceptor.on_connection(std::move(connection));
      });
  auto begin = [setup, shared = shared_, limit = listen_.setup_timeout, id = std::move(id),
                notice = std::move(notice), answer = *std::move(answer),
                place = *std::move(place)]() mutable {
    const auto begun = setup->begin(shared, std::move(id), notice, answer, std::move(place), limit);
    if (!begun) trace(begun.error(), "rdma", "connection request");
  };
  if (&there == &loop_->loop()) return begin();
  there.post(std::move(begin));
}

}  // namespace stag::fabric
