#include "endpoint/listener.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "endpoint/quiet.h"
#include "endpoint/software.h"
#include "fabric/capture/captured_fabric.h"
#include "fabric/iwarp/iwarp_fabric.h"
#include "fabric/verbs/verbs_fabric.h"
#include "net/open_files.h"
#include "rpc/rdma/server.h"
#include "rpc/tcp/server.h"
#include "rpc/udp/server.h"

namespace stag::endpoint {
namespace {

// How many Listeners there are of a service on the same Loops. References to the Loops do not say
// it: programs have their own.
class Counted {
 public:
  void begin(const Loops& loops, const rpc::Service& service) {
    const std::lock_guard lock(mutex);
    ++counts[{&loops, &service}];
    key_ = {&loops, &service};
  }
  // Whether it was the last one.
  bool end() {
    if (key_.first == nullptr) return false;
    const std::lock_guard lock(mutex);
    const auto found = counts.find(key_);
    if (--found->second > 0) return false;
    counts.erase(found);
    return true;
  }

 private:
  using Key = std::pair<const Loops*, const rpc::Service*>;
  static inline std::mutex mutex;
  static inline std::map<Key, std::size_t> counts;
  Key key_{};
};

}  // namespace

struct Listener::State {
  State(rpc::Service& served, std::shared_ptr<Loops> on) : service(served), loops(std::move(on)) {}

  rpc::Service& service;
  std::shared_ptr<Loops> loops;
  Address address;
  std::unique_ptr<rpc::tcp::TcpServer> tcp;
  std::unique_ptr<rpc::udp::UdpServer> udp;
  std::unique_ptr<fabric::Fabric> fabric;
  std::unique_ptr<rpc::rdma::Server> rdma;
  bool takes_open_files = true;  // with each connection; one by a device takes none
  Counted counted;
  bool closing = false;
  std::promise<void> closed;

  net::EpollLoop& loop() const { return loops->at(0); }

  // Where the process runs out of open files nobody gets in; a limit on connections that is reached
  // before keeps out the one address that has too many.
  template <class Number>
  void keep_within_open_files(Number& all, Number& per_peer) const {
    const std::uint64_t most = net::connections_within(net::open_files_limit());
    if (!takes_open_files || all <= most) return;
    // 0 is a share of what all have.
    if (per_peer != 0)
      per_peer = static_cast<Number>(std::max<std::uint64_t>(1, per_peer * most / all));
    all = static_cast<Number>(most);
  }
  Reason serve_tcp(Result<net::TcpListener, Reason> listener, const ListenOptions& options) {
    if (!listener) return listener.error();
    rpc::tcp::ServerOptions tcp_options = options.tcp;
    keep_within_open_files(tcp_options.max_connections, tcp_options.max_connections_per_peer);
    tcp = rpc::tcp::TcpServer::serve(loop(), *std::move(listener), service, loops->all(),
                                     tcp_options);
    address = tcp->local();
    return Reason::None;
  }
  Reason serve_udp(Result<net::UdpSocket, Reason> socket, const ListenOptions& options) {
    if (!socket) return socket.error();
    udp = rpc::udp::UdpServer::serve(loop(), *std::move(socket), service, options.udp);
    address = udp->local();
    return Reason::None;
  }
  Reason serve_rdma(const Address& at, UniqueFd socket, const ListenOptions& options) {
    rpc::rdma::ServerOptions rdma_options = options.rdma;
    if (options.fabric == FabricKind::Verbs) {
      if (socket) return Reason::AddressNotAvailable;
      takes_open_files = false;
      auto verbs = std::make_unique<fabric::VerbsFabric>(loop(), options.verbs, loops->all());
      verbs->adopt(options.verbs_port);
      fabric = std::move(verbs);
    } else {
      auto iwarp = std::make_unique<fabric::IwarpFabric>(loop(), options.iwarp, loops->all());
      if (socket) iwarp->adopt(std::move(socket));
      fabric = std::move(iwarp);
      rdma_options.transport = for_software(rdma_options.transport);
      keep_within_open_files(rdma_options.max_connections, rdma_options.max_connections_per_peer);
    }
    if (options.tap != nullptr) fabric = fabric::capture::captured(std::move(fabric), options.tap);
    auto server = std::make_unique<rpc::rdma::Server>(service, rdma_options);
    Result<Address, Reason> bound = server->listen(*fabric, at);
    if (!bound) return bound.error();
    rdma = std::move(server);
    address = *std::move(bound);
    return Reason::None;
  }
  Reason listen(const Address& at, const ListenOptions& options) {
    // A name that was never filled in must not open a server to everybody, as it does below this.
    if (at.host.empty()) return Reason::HostNotFound;
    if (options.transport == Transport::Tcp)
      return serve_tcp(net::TcpListener::listen(loop(), at), options);
    if (options.transport == Transport::Udp)
      return serve_udp(net::UdpSocket::open(loop(), at), options);
    return serve_rdma(at, {}, options);
  }
  Reason listen(UniqueFd socket, const ListenOptions& options) {
    if (options.transport == Transport::Tcp)
      return serve_tcp(net::TcpListener::adopt(loop(), std::move(socket)), options);
    if (options.transport == Transport::Udp)
      return serve_udp(net::UdpSocket::adopt(loop(), std::move(socket)), options);
    return serve_rdma({}, std::move(socket), options);
  }
  Task<> close() const {
    if (tcp != nullptr) co_await tcp->close();
    if (udp != nullptr) co_await udp->close();
    if (rdma != nullptr) co_await rdma->close();
  }
  void begin_close() {
    if (closing) return;
    loop().post([this] {
      const auto begin = [this] { return close(); };
      detail::run_for(closed, begin);
    });
    closing = true;  // not before: there may be no memory
  }
  ~State() {
    begin_close();
    try {
      closed.get_future().get();
    } catch (const std::bad_alloc&) {
      finish_on(loop(), [this] { return close(); });
    }
    finish_on(loop(), [this] {
      tcp = nullptr;
      udp = nullptr;
      rdma = nullptr;
    });
    if (!counted.end()) return;
    for (std::size_t i = 0; i < loops->size(); ++i)
      finish_on(loops->at(i), [&] { return quiet(loops->at(i), service); });
  }
};

Listener::Listener(std::unique_ptr<State> state) : state_(std::move(state)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;

const Address& Listener::address() const {
  return state_->address;
}
const std::shared_ptr<Loops>& Listener::loops() const {
  return state_->loops;
}

void Listener::allow(const std::vector<IpNetwork>& networks) {
  run_on(state_->loop(), [&] {
    if (state_->tcp != nullptr) state_->tcp->allow(networks);
    if (state_->udp != nullptr) state_->udp->allow(networks);
    if (state_->rdma != nullptr) state_->rdma->allow(networks);
  });
}

void Listener::limit_stalls(Duration limit) {
  run_on(state_->loop(), [&] {
    if (state_->tcp != nullptr) state_->tcp->limit_stalls(limit);
    if (state_->rdma != nullptr) state_->rdma->limit_stalls(limit);
  });
}

void Listener::limit_connections(std::uint32_t all, std::uint32_t per_peer) {
  state_->keep_within_open_files(all, per_peer);
  run_on(state_->loop(), [&] {
    if (state_->tcp != nullptr) state_->tcp->limit_connections(all, per_peer);
    if (state_->rdma != nullptr) state_->rdma->limit_connections(all, per_peer);
  });
}

void Listener::limit_chunks(std::uint32_t bytes) {
  run_on(state_->loop(), [&] {
    if (state_->rdma != nullptr) state_->rdma->limit_chunks(bytes);
  });
}

void Listener::stop_accepting() {
  run_on(state_->loop(), [this] {
    if (state_->tcp != nullptr) state_->tcp->stop_accepting();
    if (state_->rdma != nullptr) state_->rdma->stop_accepting();
  });
}

void Listener::begin_close() {
  state_->begin_close();
}

Result<Listener, Reason> listen(rpc::Service& service, const Address& at, ListenOptions options) {
  auto loops = shared_or_own(std::move(options.loops));
  if (!loops) return Failure{loops.error()};
  auto state = std::make_unique<Listener::State>(service, *std::move(loops));
  const Reason reason = run_on(state->loop(), [&] { return state->listen(at, options); });
  if (reason != Reason::None) return Failure{reason};
  state->counted.begin(*state->loops, service);
  return Listener(std::move(state));
}

Result<Listener, Reason> listen(rpc::Service& service, int socket, ListenOptions options) {
  UniqueFd owned(socket);
  auto loops = shared_or_own(std::move(options.loops));
  if (!loops) return Failure{loops.error()};
  auto state = std::make_unique<Listener::State>(service, *std::move(loops));
  const Reason reason =
      run_on(state->loop(), [&] { return state->listen(std::move(owned), options); });
  if (reason != Reason::None) return Failure{reason};
  state->counted.begin(*state->loops, service);
  return Listener(std::move(state));
}

}  // namespace stag::endpoint
