// stag_guard OPERATION COUNT: a client and a server of NFS on RPC-over-RDMA in one process, on the
// simulated network, make COUNT calls of one kind, one after the other. What it prints does not
// matter: bench/guard/run counts the instructions. The simulated network stands for an adapter, so
// software iWARP is not in these figures.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fabric/sim/sim_fabric.h"
#include "nfs/client/file_system.h"
#include "nfs/client/mount.h"
#include "nfs/proto/nfs3.h"
#include "nfs/server/server.h"
#include "nfs/ulb/nfs3.h"
#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/loopback_channel.h"
#include "vfs/memory/memory.h"

namespace stag {
namespace {

constexpr std::size_t kBlock = 4096;

class Guard {
 public:
  Guard() {
    nfs::ExportOptions options;
    options.root_squash = false;
    CHECK(nfs_.add_export("/data", std::make_shared<vfs::MemoryFileSystem>(), options).ok());
    nfs_.add_programs(programs_);
    const Result<Address, Reason> at = server_.listen(network_, loop_, {"server", 20049});
    CHECK(at.ok());
    channel_.emplace(network_, loop_, *at, rpc::rdma::ChannelOptions{});
    CHECK(loop_.run(channel_->connect({})).ok());
    options_.calls.credentials = rpc::Credentials::sys("guard", 0, 0);
    // RFC 8267 5.1: MOUNT is not on RDMA.
    testing::LoopbackChannel by_hand(loop_, programs_);
    const auto mounted =
        loop_.run(nfs::client::mount(by_hand, "/data", options_.calls.credentials, {}));
    CHECK(mounted.ok());
    files_.emplace(*channel_, mounted->root, "/data", options_);
    const auto file = loop_.run(files_->create(files_->root(), "file", {.mode = 0644}));
    CHECK(file.ok());
    file_ = file->handle;
    CHECK(loop_.run(files_->write_from(file_, 0, Bytes(block_))).ok());
  }
  ~Guard() {
    loop_.run(closed(*channel_));
    loop_.run(closed(server_));
  }

  // False when there is no such operation.
  bool run(std::string_view operation, int count) {
    for (int i = 0; i < count; ++i)
      if (!once(operation)) return false;
    return true;
  }

 private:
  template <class T>
  static Task<Ok> closed(T& object) {
    co_await object.close();
    co_return Ok{};
  }
  bool once(std::string_view operation) {
    if (operation == "null") {
      rpc::Client client(*channel_, {}, options_.calls.credentials);
      CHECK(loop_.run(client.ping(nfs::v3::NFS_PROGRAM, nfs::v3::NFS_V3, {})).ok());
    } else if (operation == "getattr") {
      CHECK(loop_.run(files_->getattr(file_)).ok());
    } else if (operation == "read_4k") {
      CHECK(loop_.run(files_->read(file_, 0, MutableBytes(block_))).ok());
    } else if (operation == "write_4k") {
      CHECK(loop_.run(files_->write(file_, 0, Bytes(block_), nfs::v3::UNSTABLE)).ok());
    } else {
      return false;
    }
    return true;
  }

  fabric::SimLoop loop_;
  fabric::SimFabric network_{loop_};
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  rpc::Server programs_;
  rpc::rdma::Server server_{programs_};
  std::optional<rpc::rdma::Channel> channel_;
  nfs::client::FileSystemOptions options_;
  std::optional<nfs::client::FileSystem> files_;
  nfs::client::Handle file_;
  std::array<std::byte, kBlock> block_{};
};

}  // namespace
}  // namespace stag

int main(int argc, char** argv) {
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  if (count <= 0 || !stag::Guard().run(argv[1], count)) {
    std::fputs("usage: stag_guard null|getattr|read_4k|write_4k COUNT\n", stderr);
    return 2;
  }
}
