// Client and server of NFS on RPC-over-RDMA on fabric/verbs over the stub, in one thread: what can
// be counted there - allocations, instructions - is of a call as it is served, and repeats.
#pragma once

#include <memory>
#include <optional>

#include "bench/load/operation.h"
#include "nfs/client/file_system.h"
#include "nfs/server/server.h"
#include "nfs/server/v3/request.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/verbs_runner.h"
#include "vfs/memory/memory.h"

namespace stag::testing {

class VerbsWorld {
 public:
  // The world is of one device; `inline_size`: of messages (rpc/rdma/options.h).
  explicit VerbsWorld(fabric::stub::StubOptions device = fabric::stub::rxe_like(),
                      std::optional<std::uint32_t> inline_size = {},
                      const VerbsRunner::Adjust& adjust = {})
      : runner_(std::move(device), adjust) {
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    STAG_CHECK(nfs_.add_export("/data", std::make_shared<vfs::MemoryFileSystem>(), everybody).ok());
    nfs_.add_nfs(programs_);
    rpc::rdma::ServerOptions server;
    server.transport.inline_size = inline_size;
    server_.emplace(programs_, server);
    const Result<Address, Reason> at = server_->listen(runner_.fabric, {"127.0.0.1", 0});
    STAG_CHECK(at.ok());
    rpc::rdma::ChannelOptions client;
    client.transport.inline_size = inline_size;
    channel_.emplace(runner_.fabric, *at, client);
    STAG_CHECK(runner_.run(channel_->connect({})).ok());
    nfs::client::FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("bench", 0, 0);
    files_.emplace(*channel_, root(), "/data", options);
    STAG_CHECK(runner_.run(workload_.open(*files_)));
  }
  ~VerbsWorld() {
    runner_.run(closed(*channel_));
    runner_.run(closed(*server_));
  }

  // Blocks. `count` operations, `depth` of them at a time; false when one failed.
  bool run(bench::Operation operation, std::uint64_t count, unsigned depth) {
    return runner_.run(workload_.run(operation, count, depth));
  }

 private:
  template <class T>
  static Task<Ok> closed(T& object) {
    co_await object.close();
    co_return Ok{};
  }
  // As MOUNT would tell it, which belongs on TCP (RFC 8267 5.1).
  nfs::client::Handle root() const {
    const auto exports = nfs_.exports();
    const nfs::Export& data = exports->all().front();
    return *nfs::client::Handle::from(
        nfs_.context().handles.seal(data.id, data.file_system().root()).bytes());
  }

  VerbsRunner runner_;
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  rpc::Server programs_;
  std::optional<rpc::rdma::Server> server_;
  std::optional<rpc::rdma::Channel> channel_;
  std::optional<nfs::client::FileSystem> files_;
  bench::Workload workload_;
};

}  // namespace stag::testing
