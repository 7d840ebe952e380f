// Threads that work for all clients, and are started on behalf of one.
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "testing/vfs/posix_backend.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/posix.h"

namespace stag::vfs {
namespace {

using posix::CredentialScope;
using posix::ServerScope;

// Those of the calling thread, which the kernel tells whoever asks for something impossible.
std::pair<int, int> user_and_group() {
  return {::setfsuid(-1), ::setfsgid(-1)};
}
constexpr std::pair<int, int> kServer{0, 0};

// Each job gets a thread that is started by whoever submits it, as some are in a pool.
class StartingExecutor final : public Executor {
 public:
  bool submit(Job&& job) override {
    std::thread([&] {
      started_as.push_back(user_and_group());
      job.work();
      job.work = {};
    }).join();
    job.deliver(job.context, std::move(job.done));
    return true;
  }
  std::vector<std::pair<int, int>> started_as;
};

class WorkerCredentials : public ::testing::Test {
 protected:
  static constexpr int kFiles = 120;

  void SetUp() override {
    if (!posix::can_switch_users()) GTEST_SKIP() << "needs root";
  }
  void open(posix::AtOnce at_once) {
    PosixFileSystem::Options options;
    options.root = folder_.path();
    options.cached_objects = 64;
    options.at_once = at_once;
    options.workers = plain;
    options.sync_workers = syncing;
    auto opened = PosixFileSystem::open(options);
    STAG_CHECK(opened.ok());
    fs_ = *std::move(opened);
    STAG_CHECK(::chmod(folder_.path().c_str(), 0755) == 0);
    for (int i = 0; i < kFiles; ++i) std::ofstream(folder_.path() / std::to_string(i)) << "text";
  }
  template <class T>
  T good(Operation<T> operation) {
    auto outcome = testing::finish(loop_, std::move(operation));
    STAG_CHECK(outcome.ok());
    return *std::move(outcome);
  }
  // More than the cache keeps.
  template <class Use>
  void look_up_all(const Credentials& who, Use use) {
    for (int i = 0; i < kFiles; ++i)
      use(good(fs().lookup({loop_, who}, fs().root(), std::to_string(i))).node.handle);
  }
  void look_up_all(const Credentials& who) {
    look_up_all(who, [](const Handle&) {});
  }
  FileSystem& fs() { return *fs_; }
  CallerContext as_root() { return {loop_, root_}; }

  const std::shared_ptr<StartingExecutor> plain = std::make_shared<StartingExecutor>();
  const std::shared_ptr<StartingExecutor> syncing = std::make_shared<StartingExecutor>();
  const Credentials root_{0, 0, {}};
  const Credentials alice_{1000, 1000, {7, 8}};

 private:
  testing::InlineLoop loop_;
  testing::Folder folder_{testing::kDisk};
  std::unique_ptr<PosixFileSystem> fs_;
};

// By a thread that is no worker, as a loop's is.
TEST_F(WorkerCredentials, are_the_servers_where_a_user_makes_files_that_were_read_leave_the_cache) {
  open(posix::AtOnce::Always);
  std::thread([&] {
    look_up_all(root_, [&](const Handle& file) { good(fs().read(as_root(), file, 0, 4)); });
    plain->started_as.clear();
    look_up_all(alice_);
  }).join();
  ASSERT_FALSE(plain->started_as.empty());
  for (const auto& user : plain->started_as) ASSERT_EQ(user, kServer);
}

// By a worker.
TEST_F(WorkerCredentials, are_the_servers_where_a_user_makes_uncommitted_files_leave_the_cache) {
  open(posix::AtOnce::Never);
  look_up_all(root_, [&](const Handle& file) {
    Rope data = Rope::copy_of(bytes_of("more"));
    good(fs().write(as_root(), file, 0, std::move(data), Stability::Unstable));
  });
  syncing->started_as.clear();
  look_up_all(alice_);
  ASSERT_FALSE(syncing->started_as.empty());
  for (const auto& user : syncing->started_as) ASSERT_EQ(user, kServer);
}

bool may_open(const std::filesystem::path& file) {
  return static_cast<bool>(UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)));
}

TEST_F(WorkerCredentials, are_the_servers_in_a_thread_that_was_started_as_a_user) {
  const testing::Folder folder(testing::kDisk);
  const auto secret = folder.path() / "secret";
  std::ofstream(secret).put('x');
  STAG_CHECK(::chmod(secret.c_str(), 0600) == 0 && ::chown(secret.c_str(), 2000, 2000) == 0);
  std::thread worker;
  {
    const CredentialScope scope(alice_);
    ASSERT_TRUE(scope.ok());
    worker = std::thread([&] {
      EXPECT_EQ(user_and_group(), std::pair(1000, 1000));
      posix::prepare_worker_thread(nullptr);
      EXPECT_EQ(user_and_group(), kServer);
      EXPECT_TRUE(may_open(secret));
    });
  }
  worker.join();
}

TEST_F(WorkerCredentials, are_the_users_again_after_what_is_done_for_others) {
  const testing::Folder folder(testing::kDisk);
  STAG_CHECK(::chmod(folder.path().c_str(), 0700) == 0);
  const CredentialScope scope(alice_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(may_open(folder.path()));
    {
      const ServerScope as_server;
      EXPECT_EQ(user_and_group(), kServer);
      EXPECT_TRUE(may_open(folder.path()));
      const ServerScope within;
      EXPECT_EQ(user_and_group(), kServer);
    }
    EXPECT_EQ(user_and_group(), std::pair(1000, 1000));
  }
}

}  // namespace
}  // namespace stag::vfs
