#include "bench/worlds/iwarp_world.h"

#include "endpoint/connector.h"
#include "endpoint/listener.h"
#include "nfs/client/session/session.h"
#include "nfs/server/server.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"

namespace stag::bench {

struct IwarpWorld::State {
  State(Versions versions, rpc::Observer* observer) : versions_(versions) {
    if (observer != nullptr) server_.observe(*observer);
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    STAG_CHECK(nfs_.add_export("/", std::make_shared<vfs::MemoryFileSystem>(), everybody).ok());
    nfs_.add_programs(server_);
    if (versions != Versions::Nfs3)
      nfs4_.emplace(nfs_.context(), nfs::nfs4::Nfs4Options{}).add_program(server_);
    endpoint::ListenOptions listen;
    listen.loops = loops_;
    for (const auto transport : {endpoint::Transport::Rdma, endpoint::Transport::Tcp}) {
      listen.transport = transport;
      auto listener = endpoint::listen(server_, {"127.0.0.1", 0}, listen);
      STAG_CHECK(listener.ok());
      listeners_.push_back(*std::move(listener));
      endpoint::ConnectorOptions wiring;
      wiring.transport = transport;
      connectors_.push_back(endpoint::make_connector(loops_->at(0), wiring));
    }
    STAG_CHECK(endpoint::wait_on(loop(), [this] { return open(); }));
    if (versions == Versions::Nfs4)
      STAG_CHECK(endpoint::wait_on(loop(), [this] { return workload_.use_nfs4(); }));
  }
  ~State() {
    endpoint::wait_on(loop(), [this] { return session_->close(); });
    endpoint::run_on(loop(), [this] { session_.reset(); });
  }

  Loop& loop() { return loops_->at(0); }
  Task<bool> open() {
    const std::string where =
        "nfs://127.0.0.1:" + std::to_string(listeners_[0].address().port) +
        (versions_ == Versions::Nfs42
             ? "/?version=4.2"
             : "/?version=3&mountport=" + std::to_string(listeners_[1].address().port));
    const auto url = nfs::client::Url::parse(where);
    if (!url) co_return false;
    const nfs::client::Connectors connectors{*connectors_[0], *connectors_[1]};
    nfs::client::FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("host", 0, 0);
    auto session = co_await nfs::client::Session::open(connectors, *url, options);
    if (!session) co_return false;
    session_ = *std::move(session);
    co_return co_await workload_.open(session_->files());
  }

  const Versions versions_;
  std::shared_ptr<endpoint::Loops> loops_ = std::make_shared<endpoint::Loops>(1);
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  std::optional<nfs::nfs4::Nfs4Server> nfs4_;
  rpc::Server server_;
  std::vector<endpoint::Listener> listeners_;                  // RDMA, TCP
  std::vector<std::unique_ptr<rpc::Connector>> connectors_{};  // the same
  std::unique_ptr<nfs::client::Session> session_;
  Workload workload_;
};

IwarpWorld::IwarpWorld(Versions versions, rpc::Observer* observer)
    : state_(std::make_unique<State>(versions, observer)) {}
IwarpWorld::~IwarpWorld() = default;

bool IwarpWorld::run(Operation operation, std::uint64_t count, unsigned depth) {
  return endpoint::wait_on(state_->loop(),
                           [&] { return state_->workload_.run(operation, count, depth); });
}

}  // namespace stag::bench
