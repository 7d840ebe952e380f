#include "bench/worlds/sim_world.h"

#include "fabric/sim/sim_fabric.h"
#include "nfs/client/file_system.h"
#include "nfs/server/server.h"
#include "nfs/server/v3/request.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"

namespace stag::bench {

struct SimWorld::State {
  State() {
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    STAG_CHECK(nfs_.add_export("/data", std::make_shared<vfs::MemoryFileSystem>(), everybody).ok());
    nfs_.add_nfs(programs_);
    const Result<Address, Reason> at = server_.listen(network_, {"server", 20049});
    STAG_CHECK(at.ok());
    channel_.emplace(network_, *at, rpc::rdma::ChannelOptions{});
    STAG_CHECK(loop_.run(channel_->connect({})).ok());
    nfs::client::FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("bench", 0, 0);
    files_.emplace(*channel_, root(), "/data", options);
    STAG_CHECK(loop_.run(workload_.open(*files_)));
  }
  ~State() {
    loop_.run(closed(*channel_));
    loop_.run(closed(server_));
  }

  template <class T>
  static Task<Ok> closed(T& object) {
    co_await object.close();
    co_return Ok{};
  }
  // As MOUNT would tell it, which belongs on TCP (RFC 8267 5.1): this network has none.
  nfs::client::Handle root() const {
    const auto exports = nfs_.exports();
    const nfs::Export& data = exports->all().front();
    return *nfs::client::Handle::from(
        nfs_.context().handles.seal(data.id, data.file_system().root()).bytes());
  }

  fabric::SimLoop loop_;
  fabric::SimFabric network_{loop_};
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  rpc::Server programs_;
  rpc::rdma::Server server_{programs_};
  std::optional<rpc::rdma::Channel> channel_;
  std::optional<nfs::client::FileSystem> files_;
  Workload workload_;
};

SimWorld::SimWorld() : state_(std::make_unique<State>()) {}
SimWorld::~SimWorld() = default;

bool SimWorld::run(Operation operation, std::uint64_t count, unsigned depth) {
  return state_->loop_.run(state_->workload_.run(operation, count, depth));
}

Sample SimWorld::run_for(Operation operation, double seconds, unsigned depth) {
  constexpr std::uint64_t kBatch = 1024;
  const Stopwatch watch(kNoPeer);
  std::uint64_t operations = 0;
  do {
    if (!run(operation, kBatch, depth)) return {};
    operations += kBatch;
  } while (watch.elapsed() < seconds);
  return watch.stop(operations, 0);
}

}  // namespace stag::bench
