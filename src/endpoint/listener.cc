#include "endpoint/listener.h"

#include "endpoint/software.h"
#include "fabric/iwarp/iwarp_fabric.h"
#include "fabric/verbs/verbs_fabric.h"
#include "rpc/rdma/server.h"
#include "rpc/tcp/server.h"
#include "rpc/udp/server.h"

namespace stag::endpoint {
namespace {

using namespace std::chrono_literals;

// Calls outlive their connections; before the loops go they have ended.
Task<> quiet(Loop& loop, const rpc::Service& service) {
  while (service.active_calls() > 0) co_await sleep_for(loop, 1ms);
}

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

  net::EpollLoop& loop() const { return loops->at(0); }

  Reason listen_tcp(const Address& at, const ListenOptions& options) {
    auto server = rpc::tcp::TcpServer::listen(loop(), at, service, loops->all(), options.tcp);
    if (!server) return server.error();
    tcp = *std::move(server);
    address = tcp->local();
    return Reason::None;
  }
  Reason listen_udp(const Address& at, const ListenOptions& options) {
    auto server = rpc::udp::UdpServer::listen(loop(), at, service, options.udp);
    if (!server) return server.error();
    udp = *std::move(server);
    address = udp->local();
    return Reason::None;
  }
  Reason listen_rdma(const Address& at, const ListenOptions& options) {
    rpc::rdma::ServerOptions rdma_options = options.rdma;
    if (options.fabric == FabricKind::Verbs) {
      fabric = std::make_unique<fabric::VerbsFabric>(loop(), options.verbs, loops->all());
    } else {
      fabric = std::make_unique<fabric::IwarpFabric>(loop(), options.iwarp, loops->all());
      rdma_options.transport = for_software(rdma_options.transport);
    }
    auto server = std::make_unique<rpc::rdma::Server>(service, rdma_options);
    Result<Address, Reason> bound = server->listen(*fabric, at);
    if (!bound) return bound.error();
    rdma = std::move(server);
    address = *std::move(bound);
    return Reason::None;
  }
  ~State() {
    if (tcp != nullptr) wait_on(loop(), [this] { return tcp->close(); });
    if (udp != nullptr) wait_on(loop(), [this] { return udp->close(); });
    if (rdma != nullptr) wait_on(loop(), [this] { return rdma->close(); });
    run_on(loop(), [this] {
      tcp = nullptr;
      udp = nullptr;
      rdma = nullptr;
    });
    if (loops.use_count() == 1) wait_on(loop(), [this] { return quiet(loop(), service); });
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

Result<Listener, Reason> listen(rpc::Service& service, const Address& at, ListenOptions options) {
  auto loops = options.loops != nullptr ? options.loops : std::make_shared<Loops>();
  options.loops = nullptr;
  auto state = std::make_unique<Listener::State>(service, std::move(loops));
  const Reason reason = run_on(state->loop(), [&] {
    if (options.transport == Transport::Tcp) return state->listen_tcp(at, options);
    if (options.transport == Transport::Udp) return state->listen_udp(at, options);
    return state->listen_rdma(at, options);
  });
  if (reason != Reason::None) return Failure{reason};
  return Listener(std::move(state));
}

}  // namespace stag::endpoint
