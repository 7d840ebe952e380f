#include "cli/serve/locking.h"

#include "cli/serve/process.h"
#include "endpoint/loops.h"
#include "net/worker_pool.h"
#include "nfs/lock/lock_service.h"
#include "nfs/server/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/udp/channel.h"
#include "rpcbind/lookup.h"

namespace stag::cli {
namespace {

using ReachedChannel = Result<std::unique_ptr<rpc::Channel>, rpc::CallError>;

// Asks the client's rpcbind where its lock manager is. TCP, and UDP where there is nothing else.
class RpcbindPeers final : public nfs::lock::Peers {
 public:
  explicit RpcbindPeers(net::EpollLoop& loop) : loop_(loop) {}

  Task<ReachedChannel> reach(nfs::lock::Route route, std::uint32_t program, std::uint32_t version,
                             CancelToken cancel) override {
    rpcbind::Question question;
    question.program = program;
    question.version = version;
    question.netids = rpcbind::netids_for(rpcbind::kTcp, route.host);
    for (std::string& netid : rpcbind::netids_for(rpcbind::kUdp, route.host))
      question.netids.push_back(std::move(netid));
    rpcbind::Options options;
    options.cancel = cancel;
    rpc::tcp::ChannelOptions tcp;
    tcp.connect_timeout = std::chrono::seconds(5);
    rpc::tcp::TcpConnector by_tcp(loop_, tcp, route.from);
    const auto found = co_await rpcbind::lookup(by_tcp, route.host, question, options);
    if (!found) co_return Failure{found.error()};
    rpc::udp::UdpConnector by_udp(loop_, {}, route.from);
    Address at;
    at.host = std::move(route.host);
    at.port = found->port;
    rpc::Connector* connector = &by_tcp;
    if (found->netid.starts_with(rpcbind::kUdp)) connector = &by_udp;
    ReachedChannel channel = co_await connector->connect(at, cancel);
    co_return channel;
  }

 private:
  net::EpollLoop& loop_;
};

}  // namespace

struct Locking::State {
  endpoint::Loops loops;
  RpcbindPeers peers{loops.at(0)};
  std::unique_ptr<nfs::lock::LockService> service;
};

Locking::Locking(std::unique_ptr<State> state) : state_(std::move(state)) {}

Locking::~Locking() {
  endpoint::finish_on(state_->loops.at(0), [this] { return state_->service->stop(); });
}

Result<std::unique_ptr<Locking>, std::string> Locking::open(const nfs::NfsServer& nfs,
                                                            const std::string& state,
                                                            const Recovery& recovery,
                                                            StoreWatch& stores) {
  auto made = std::make_unique<State>();
  nfs::lock::LockServiceOptions options;
  options.state_directory = state;
  options.host_name = host_name();
  options.grace = recovery.grace();
  options.grace_period = recovery.period();
  net::WorkerOptions one;
  one.limits.threads = 1;
  one.name = StoreWatch::state_directory(state);
  options.records_worker = stores.make(one);
  auto opened =
      nfs::lock::LockService::open(nfs.context(), options, made->loops.at(0), made->peers);
  if (!opened) return Failure{opened.error().message};
  made->service = *std::move(opened);
  return std::unique_ptr<Locking>(new Locking(std::move(made)));
}

void Locking::add_programs(rpc::Server& server) {
  state_->service->add_programs(server);
}

void Locking::start() {
  state_->service->start();
}

nfs::lock::LockService& Locking::service() {
  return *state_->service;
}

Loop& Locking::loop() {
  return state_->loops.at(0);
}

}  // namespace stag::cli
