// NULL, GETATTR, and READ and WRITE of 4 KiB on software iWARP, 32 at a time, take nothing from the
// heap once they are under way: neither the client nor the server, which are both in this process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/task_group.h"
#include "endpoint/connector.h"
#include "endpoint/listener.h"
#include "nfs/client/session.h"
#include "nfs/proto/nfs3.h"
#include "nfs/server/server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"

namespace {
std::atomic<std::size_t> allocations{0};
}

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace stag::bench {
namespace {

namespace client = nfs::client;

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBlocks = 512;
constexpr unsigned kDepth = 32;

enum class Kind { Null, Getattr, Read, Write };

class Pair {
 public:
  Pair() {
    nfs::ExportOptions everybody;
    everybody.root_squash = false;
    CHECK(nfs_.add_export("/", std::make_shared<vfs::MemoryFileSystem>(), everybody).ok());
    nfs_.add_programs(server_);
    endpoint::ListenOptions listen;
    listen.loops = loops_;
    for (const auto transport : {endpoint::Transport::Rdma, endpoint::Transport::Tcp}) {
      listen.transport = transport;
      auto listener = endpoint::listen(server_, {"127.0.0.1", 0}, listen);
      CHECK(listener.ok());
      listeners_.push_back(*std::move(listener));
      endpoint::ConnectorOptions wiring;
      wiring.transport = transport;
      auto connector = endpoint::make_connector(wiring);
      CHECK(connector.ok());
      connectors_.push_back(*std::move(connector));
    }
    CHECK(endpoint::wait_on(loop(), [this] { return open(); }).ok());
  }
  ~Pair() {
    endpoint::wait_on(loop(), [this] { return session_->close(); });
    endpoint::run_on(loop(), [this] { session_.reset(); });
  }

  // Heap allocations of both sides during `count` calls.
  std::size_t allocations_of(Kind kind, int count) {
    const std::size_t before = allocations.load();
    endpoint::wait_on(loop(), [&] { return run(kind, count); });
    return allocations.load() - before;
  }
  int failed() const { return failed_; }

 private:
  Loop& loop() { return loops_->at(0); }

  Task<client::Outcome<Ok>> open() {
    const std::string where = "nfs://127.0.0.1:" + std::to_string(listeners_[0].address().port) +
                              "/?mountport=" + std::to_string(listeners_[1].address().port);
    const auto url = client::Url::parse(where);
    if (!url) co_return Failure{url.error()};
    const client::Connectors connectors{*connectors_[0], *connectors_[1]};
    client::FileSystemOptions options;
    options.calls.credentials = rpc::Credentials::sys("host", 0, 0);
    auto session = co_await client::Session::open(loop(), connectors, *url, options);
    if (!session) co_return Failure{session.error()};
    session_ = *std::move(session);
    client::FileSystem& files = session_->files();
    client::SetAttributes attributes;
    attributes.mode = 0644;
    const auto file = co_await files.create(files.root(), "file", attributes);
    if (!file) co_return Failure{file.error()};
    file_ = file->handle;
    const auto written = co_await files.write_from(file_, 0, memory_);
    if (!written) co_return Failure{written.error()};
    co_return Ok{};
  }

  Task<void> run(Kind kind, int count) {
    left_ = count;
    for (unsigned i = 0; i < kDepth; ++i) group_.add(work(kind, i));
    co_await group_.join();
  }
  Task<void> work(Kind kind, unsigned index) {
    const MutableBytes block = MutableBytes(memory_).subspan(index * kBlock, kBlock);
    while (left_-- > 0) {
      const bool good = co_await once(kind, block);
      failed_ += good ? 0 : 1;
    }
  }
  Task<bool> once(Kind kind, MutableBytes block) {
    client::FileSystem& files = session_->files();
    const std::uint64_t at = next_++ * 5 % kBlocks * kBlock;
    if (kind == Kind::Null) {
      const auto pong = co_await files.ping();
      co_return pong.ok();
    }
    if (kind == Kind::Getattr) {
      const auto attributes = co_await files.getattr(file_);
      co_return attributes.ok();
    }
    if (kind == Kind::Read) {
      const auto part = co_await files.read(file_, at, block);
      co_return part && part->count == kBlock;
    }
    const auto part = co_await files.write(file_, at, block, nfs::v3::UNSTABLE);
    co_return part && part->count == kBlock;
  }

  std::shared_ptr<endpoint::Loops> loops_ = std::make_shared<endpoint::Loops>(1);
  nfs::NfsServer nfs_{nfs::ServerState::ephemeral(1)};
  rpc::Server server_;
  std::vector<endpoint::Listener> listeners_;                  // RDMA, TCP
  std::vector<std::unique_ptr<rpc::Connector>> connectors_{};  // the same
  std::unique_ptr<client::Session> session_;
  client::Handle file_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBlocks * kBlock);
  TaskGroup group_;
  std::uint64_t next_ = 0;
  int left_ = 0;
  int failed_ = 0;
};

TEST(Call, of_nfs_on_software_iwarp_allocates_nothing_in_steady_state) {
  Pair pair;
  for (const Kind kind : {Kind::Null, Kind::Getattr, Kind::Read, Kind::Write}) {
    SCOPED_TRACE(static_cast<int>(kind));
    (void)pair.allocations_of(kind, 2000);
    // What starts and awaits the workers is not of the calls.
    EXPECT_LE(pair.allocations_of(kind, 2000), 16u);
  }
  EXPECT_EQ(pair.failed(), 0);
}

}  // namespace
}  // namespace stag::bench
