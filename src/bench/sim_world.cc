#include "bench/sim_world.h"

#include "fabric/sim/sim_fabric.h"
#include "nfs/client/file_system.h"
#include "nfs/client/mount.h"
#include "nfs/server/server.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"

namespace stag::bench {

namespace {

// Hands each Call straight to a Service: for MOUNT, which belongs on TCP (RFC 8267 5.1), and this
// network has none.
class ByHand final : public rpc::Channel {
 public:
  ByHand(Loop& loop, rpc::Service& service)
      : Channel(1), loop_(loop), service_(service), origin_(std::make_shared<rpc::Origin>()) {
    origin_->peer = {"192.0.2.1", 700};
    origin_->transport = rpc::TransportKind::Memory;
    origin_->netid = "memory";
    origin_->loop = &loop;
  }
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    rpc::IncomingCall incoming;
    incoming.origin = origin_;
    incoming.payload = message.stream.without({}).flatten();
    auto outgoing = co_await service_.serve(incoming);
    if (!outgoing) co_return Failure{rpc::CallError::transport(Reason::None, where())};
    rpc::ReplyMessage reply;
    reply.payload = outgoing->stream.without({}).flatten();
    co_return reply;
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return origin_->transport; }
  std::string where() const override { return "memory"; }

 private:
  Loop& loop_;
  rpc::Service& service_;
  std::shared_ptr<rpc::Origin> origin_;
};

}  // namespace

struct SimWorld::State {
  State() {
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    CHECK(nfs_.add_export("/data", std::make_shared<vfs::MemoryFileSystem>(), everybody).ok());
    nfs_.add_programs(programs_);
    const Result<Address, Reason> at = server_.listen(network_, loop_, {"server", 20049});
    CHECK(at.ok());
    channel_.emplace(network_, loop_, *at, rpc::rdma::ChannelOptions{});
    CHECK(loop_.run(channel_->connect({})).ok());
    CHECK(loop_.run(prepare()));
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
  Task<bool> prepare() {
    nfs::client::FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("bench", 0, 0);
    ByHand by_hand(loop_, programs_);
    const rpc::CallOptions calls;
    auto mounted = co_await nfs::client::mount(by_hand, "/data", options.calls.credentials, calls);
    if (!mounted) co_return false;
    files_.emplace(*channel_, mounted->root, "/data", options);
    co_return co_await workload_.open(*files_);
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
