// Where memory runs out: times of new files that wait are set all the same, and what the kernel
// forgets or closes, which it does not say twice, goes.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fuse/closes.h"
#include "fuse/inodes.h"
#include "testing/failing_new.h"
#include "testing/nfs/held_world.h"
#include "testing/nfs/new_files_world.h"

namespace stag::fuse {
namespace {

using namespace std::chrono_literals;

// In each allocation once, of the client as of the loop and the server that are in the same thread;
// then in all behind it.
TEST(SettlingMemory, running_out_amid_files_puts_off_those_that_are_left) {
  for (const bool lasts : {false, true})
    for (std::size_t n = 1;; ++n) {
      testing::NewFilesWorld world;
      for (std::uint64_t file = 1; file <= 3; ++file) world.begin(file);
      world.pass(Settling::kAfter - 1ms);
      testing::failed_allocations = 0;
      testing::failure_lasts = lasts;
      testing::allocations_until_failure = n;
      world.pass(10ms);
      testing::allocations_until_failure = 0;
      testing::failure_lasts = false;
      world.pass(2min);
      EXPECT_EQ(world.set.size(), 3u) << n;
      EXPECT_FALSE(world.files.any_waits()) << n;
      world.stop();
      if (testing::failed_allocations == 0 || HasFailure()) {
        EXPECT_GT(n, 10u) << "it allocates next to nothing";
        break;
      }
    }
}

nfs::client::Handle long_handle(std::uint8_t first) {
  const std::vector<std::byte> bytes(nfs::client::Handle::kMaxSize, std::byte{first});
  return *nfs::client::Handle::from(bytes);
}

// Of this thread every allocation fails while it is there.
struct NoMemory {
  NoMemory() {
    testing::failed_allocations = 0;
    testing::failure_lasts = true;
    testing::allocations_until_failure = 1;
  }
  ~NoMemory() {
    testing::allocations_until_failure = 0;
    testing::failure_lasts = false;
  }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

TEST(InodesMemory, none_is_needed_to_forget_and_to_close) {
  Inodes inodes(long_handle(1));
  const std::uint64_t forgotten = inodes.enter(long_handle(2)),
                      closed = inodes.enter(long_handle(3)), kept = inodes.enter(long_handle(4));
  inodes.call(forgotten, Inodes::kRoot, "a name too long to be stored in place");
  inodes.open(*inodes.find(closed));
  inodes.forget(closed, 1);
  {
    const Inodes::Reference reference(inodes, kept);
    inodes.forget(kept, 1);
    const NoMemory none;
    inodes.forget(forgotten, 1);
    EXPECT_TRUE(inodes.close(closed));
  }
  EXPECT_EQ(testing::failed_allocations, 0u);
  EXPECT_EQ(inodes.size(), 1u);
}

// Timers need no memory, as those of net::EpollLoop.
class RoomyLoop final : public Loop {
 public:
  explicit RoomyLoop(testing::ManualLoop& loop) : loop_(loop) {}
  TimePoint now() const override { return loop_.now(); }
  void post(Function function) override { loop_.post(std::move(function)); }
  Timer after(Duration delay, Function function) override {
    const std::size_t before = std::exchange(testing::allocations_until_failure, 0);
    Timer timer = loop_.after(delay, std::move(function));
    testing::allocations_until_failure = before;
    return timer;
  }
  void offload(Function work, Function done) override {
    loop_.offload(std::move(work), std::move(done));
  }
  bool on_thread() const override { return true; }

 private:
  void cancel_timer(std::uint64_t) override {}  // they are those of the other loop

  testing::ManualLoop& loop_;
};

// Coroutines begin with frames from the heap, and not with those of others that have ended.
void drop_kept_frames() {
  for (auto& list : stag::detail::frame_lists) {
    while (list.head != nullptr)
      stag::detail::drop_frame(std::exchange(list.head, list.head->next));
    list.count = 0;
  }
}

// Goes on behind what found no memory, as a loop does.
void drain(testing::ManualLoop& loop) {
  for (;;) try {
      return loop.drain();
    } catch (const std::bad_alloc&) {
    }
}

// A server that has memory, whatever its client has.
class RoomyService final : public rpc::Service {
 public:
  explicit RoomyService(rpc::Service& service) : service_(service) {}
  Task<std::optional<rpc::OutgoingReply>> serve(rpc::IncomingCall& call) override {
    const std::size_t before = std::exchange(testing::allocations_until_failure, 0);
    auto reply = co_await service_.serve(call);
    testing::allocations_until_failure = before;
    co_return reply;
  }

 private:
  rpc::Service& service_;
};

// That a program has closed, and the server has not; it is locked.
struct ClosedFile {
  explicit ClosedFile(std::uint32_t minor) {
    nfs::client::ProtocolOptions options;
    options.credentials = rpc::Credentials::sys("tests", 0, 0);
    options.version = 4;
    options.minor = minor;
    protocol = *run(nfs::client::nfs4::Nfs4::connect(channel, options));
    const auto root = run(protocol->root({"find the root", {}}));
    nfs::client::FileSystem all(protocol, root->handle, "/", {.calls = options});
    files.emplace(protocol, run(all.walk("data"))->handle, "/data",
                  nfs::client::FileSystemOptions{.calls = options});
    closes.emplace(roomy, *files, lock_turns, [](std::uint64_t, const OpenFiles::Open&) {
      return []() -> Task<void> { co_return; }();
    });
    const auto made =
        run(files->create_open(files->root(), "file", {.mode = 0644},
                               nfs::client::CreateMode::Unchecked, testing::HeldWorld::kBoth));
    STAG_CHECK(made.ok());
    STAG_CHECK(
        run(files->lock(made->file, testing::HeldWorld::kMine, testing::HeldWorld::kTen)).ok());
    const std::uint64_t opened = open_files.add(1, {.file = made->file});
    open_files.on_lock(1, opened, testing::HeldWorld::kMine);
    closed_file = open_files.remove(1, opened);
  }
  template <class T>
  T run(Task<T> task) {
    return nfs::client::run_on(loop, std::move(task));
  }
  Task<Ok> ended() {
    co_await closes->end();
    co_await protocol->close();
    co_return Ok{};
  }
  // Opens and locks that the server knows.
  std::uint32_t held() {
    std::uint32_t all = 0;
    for (std::uint32_t i = 0; i < nfs::state::Clients::kShards; ++i)
      for (const auto& client : served.nfs4.administration().clients(i, loop.now()))
        all += client.held.opens + client.held.locks;
    return all;
  }

  testing::ManualLoop loop;
  testing::Nfs4Instance served{loop, std::make_shared<vfs::MemoryFileSystem>()};
  RoomyService service{served.server};
  testing::LoopbackChannel channel{loop, service};
  std::shared_ptr<nfs::client::nfs4::Nfs4> protocol;
  std::optional<nfs::client::FileSystem> files;
  OpenFiles open_files;
  OpenFiles::Node closed_file;
  Turns lock_turns;
  RoomyLoop roomy{loop};
  std::optional<Closes> closes;
};

TEST(ClosesMemory, running_out_leaves_neither_open_nor_lock_at_the_server) {
  for (const std::uint32_t minor : {0u, 1u})
    for (const bool lasts : {false, true})
      for (std::size_t n = 1;; ++n) {
        ClosedFile world(minor);
        world.loop.drain();
        drop_kept_frames();
        testing::failed_allocations = 0;
        testing::failure_lasts = lasts;
        testing::allocations_until_failure = n;
        world.closes->begin(std::move(world.closed_file));
        drain(world.loop);
        testing::allocations_until_failure = 0;
        testing::failure_lasts = false;
        const std::size_t failed = testing::failed_allocations;
        world.loop.pass(5s);
        EXPECT_EQ(world.held(), 0u) << "version 4." << minor << ", allocation " << n;
        world.run(world.ended());
        if (failed > 0) continue;
        EXPECT_GT(n, 10u) << "it allocates next to nothing";
        break;
      }
}

}  // namespace
}  // namespace stag::fuse
