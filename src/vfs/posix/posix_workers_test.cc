// Where a store's work is done, and what becomes of it while the file system does not answer.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/loop_credentials.h"
#include "base/worker_time.h"
#include "testing/held_executor.h"
#include "testing/vfs/fixture.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/object.h"
#include "vfs/posix/posix.h"
#include "vfs/posix/residence.h"

namespace stag::vfs {
namespace {

using posix::AtOnce;
using posix::Residence;
using stag::testing::HeldExecutor;

TEST(Residence, is_on_this_machine_for_its_own_file_systems_only) {
  EXPECT_EQ(posix::residence_of(TMPFS_MAGIC), Residence::Memory);
  EXPECT_EQ(posix::residence_of(RAMFS_MAGIC), Residence::Memory);
  for (const std::int64_t disk : {0xEF53L, 0x58465342L, 0x9123683EL, 0xF2F52010L}) {
    EXPECT_EQ(posix::residence_of(disk), Residence::Disk) << std::hex << disk;
    // statfs(2) has the field signed, and fills 64 bits of it on some machines.
    EXPECT_EQ(posix::residence_of(static_cast<std::int32_t>(disk)), Residence::Disk);
  }
  constexpr std::int64_t kCeph = 0x00c36400;
  for (const std::int64_t other :
       {std::int64_t{FUSE_SUPER_MAGIC}, std::int64_t{NFS_SUPER_MAGIC}, kCeph,
        std::int64_t{OVERLAYFS_SUPER_MAGIC}, std::int64_t{CIFS_SUPER_MAGIC}, std::int64_t{0},
        std::int64_t{0x12345678}})
    EXPECT_EQ(posix::residence_of(other), Residence::Elsewhere) << std::hex << other;
}

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A folder with a file, a folder and a symlink, on workers that the test lets begin.
class PosixWorkers : public ::testing::Test {
 protected:
  explicit PosixWorkers(const std::string& below = "/tmp") {
    std::string pattern = below + "/stag-workers-XXXXXX";
    STAG_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    std::ofstream(path_ / "file") << "text";
    std::filesystem::create_directory(path_ / "folder");
    std::filesystem::create_symlink("file", path_ / "link");
  }
  ~PosixWorkers() override {
    fs_.reset();
    plain->run_all();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void open(AtOnce at_once, posix::HandleKind handles = posix::HandleKind::Automatic) {
    PosixFileSystem::Options options;
    options.root = path_;
    options.at_once = at_once;
    options.handles = handles;
    options.cached_objects = cached_objects;
    options.workers = plain;
    options.sync_workers = syncing;
    auto opened = PosixFileSystem::open(options);
    STAG_CHECK(opened.ok());
    fs_ = *std::move(opened);
    for (const char* name : {"file", "folder", "link"}) handles_[name] = find(name);
    // Opens the file for both.
    Rope data = Rope::copy_of(bytes_of("text"));
    good(fs().write(caller(), file(), 0, std::move(data), Stability::Unstable));
    good(fs().read(caller(), file(), 0, 4));
  }
  Handle find(const char* name) {
    return good(fs().lookup(caller(), fs().root(), name)).node.handle;
  }

  // The outcome, once there is one.
  template <class T>
  std::shared_ptr<std::optional<Outcome<T>>> start(Operation<T> operation) {
    auto outcome = std::make_shared<std::optional<Outcome<T>>>();
    detach(keep(stag::testing::awaited(std::move(operation)), outcome));
    loop_.drain();
    return outcome;
  }
  template <class T>
  T good(Operation<T> operation) {
    const auto outcome = start(std::move(operation));
    run_all();
    STAG_CHECK(outcome->has_value() && (*outcome)->ok());
    return **std::move(*outcome);
  }
  void run_all() {
    loop_.drain();
    while (!plain->held.empty() || !syncing->held.empty()) {
      plain->run_all();
      syncing->run_all();
      loop_.drain();
    }
  }
  void run_plain() {
    plain->run_all();
    loop_.drain();
  }
  void run_first() {
    Executor::Job job = std::move(plain->held.front());
    plain->held.pop_front();
    job.work();
    job.deliver(job.context, std::move(job.done));
    loop_.drain();
  }
  // That the operation has one job there and no answer before it is run, and a good one then.
  template <class T>
  void expect_offloaded(HeldExecutor& to, Operation<T> operation) {
    const auto outcome = start(std::move(operation));
    EXPECT_FALSE(outcome->has_value());
    ASSERT_EQ(to.held.size(), 1u);
    EXPECT_EQ(to.held.front().client, &connection_);
    EXPECT_EQ(plain->held.size() + syncing->held.size(), 1u);
    run_all();
    ASSERT_TRUE(outcome->has_value());
    EXPECT_TRUE((*outcome)->ok());
  }

  PosixFileSystem& fs() { return *fs_; }
  Loop& loop() { return loop_; }
  CallerContext caller() { return {loop_, who_, &connection_}; }
  CallerContext caller(const Credentials& who) { return {loop_, who, &connection_}; }
  const Handle& file() { return handles_["file"]; }

  const std::shared_ptr<HeldExecutor> plain = std::make_shared<HeldExecutor>();
  const std::shared_ptr<HeldExecutor> syncing = std::make_shared<HeldExecutor>();
  std::size_t cached_objects = 0;
  std::filesystem::path path_;
  std::unique_ptr<PosixFileSystem> fs_;
  std::map<std::string, Handle> handles_;
  const int connection_ = 0;

 private:
  template <class T>
  static Task<void> keep(Task<Outcome<T>> task,
                         std::shared_ptr<std::optional<Outcome<T>>> outcome) {
    outcome->emplace(co_await std::move(task));
  }
  testing::InlineLoop loop_;
  const Credentials who_{::geteuid(), ::getegid(), {}};
};

TEST_F(PosixWorkers, are_asked_for_everything_when_nothing_is_answered_at_once) {
  open(AtOnce::Never);
  EXPECT_FALSE(fs().answers_at_once());
  const Handle root = fs().root();
  expect_offloaded(*plain, fs().attributes(caller(), root));
  expect_offloaded(*plain, fs().attributes(caller(), file()));
  expect_offloaded(*plain, fs().access(caller(), file(), access::kAll));
  expect_offloaded(*plain, fs().lookup(caller(), root, "file"));
  expect_offloaded(*plain, fs().read(caller(), file(), 0, 4));
  expect_offloaded(*plain, fs().readlink(caller(), handles_["link"]));
  expect_offloaded(*plain, fs().usage(caller()));
  expect_offloaded(*plain, fs().acls(caller(), file()));
  Rope data = Rope::copy_of(bytes_of("more"));
  expect_offloaded(*plain, fs().write(caller(), file(), 0, std::move(data), Stability::Unstable));
  testing::Names names;
  expect_offloaded(*plain, fs().list(caller(), root, {}, names));
  EXPECT_EQ(names.names.size(), 5u);
}

// As where RDMA devices are in use.
struct KeptCredentials {
  KeptCredentials() { keep_credentials_of_loops(); }
  ~KeptCredentials() { loops_have_to_keep_credentials = false; }
};

template <class T>
bool at_once(const std::shared_ptr<std::optional<Outcome<T>>>& outcome) {
  return outcome->has_value() && (*outcome)->ok();
}

TEST_F(PosixWorkers, act_as_other_users_where_loops_keep_their_credentials) {
  if (!posix::can_switch_users()) GTEST_SKIP() << "takes root";
  open(AtOnce::Always);
  std::filesystem::permissions(path_, std::filesystem::perms(0755));
  std::filesystem::permissions(path_ / "file", std::filesystem::perms(0644));
  const Handle root = fs().root();
  const Credentials other{1000, 1000, {}};
  // The first check of somebody who is not the owner is a worker's.
  good(fs().access(caller(other), file(), access::kAll));
  EXPECT_TRUE(at_once(start(fs().access(caller(other), file(), access::kAll))));
  EXPECT_TRUE(at_once(start(fs().lookup(caller(other), root, "file"))));
  EXPECT_TRUE(at_once(start(fs().read(caller(other), file(), 0, 4))));
  const KeptCredentials kept;
  expect_offloaded(*plain, fs().access(caller(other), file(), access::kAll));
  expect_offloaded(*plain, fs().lookup(caller(other), root, "file"));
  expect_offloaded(*plain, fs().read(caller(other), file(), 0, 4));
  // The server itself asks, or nobody.
  EXPECT_TRUE(at_once(start(fs().access(caller(), file(), access::kAll))));
  EXPECT_TRUE(at_once(start(fs().lookup(caller(), root, "file"))));
  EXPECT_TRUE(at_once(start(fs().read(caller(), file(), 0, 4))));
  std::filesystem::permissions(path_ / "file", std::filesystem::perms(0640));
  ASSERT_EQ(::chown((path_ / "file").c_str(), other.uid, other.gid), 0);
  EXPECT_TRUE(at_once(start(fs().read(caller(other), file(), 0, 4)))) << "the owner's file";
}

class PosixWorkersInMemory : public PosixWorkers {
 protected:
  PosixWorkersInMemory() : PosixWorkers("/dev/shm") {}
};

// A loop that writes at once lays down the right to what is reserved for root.
TEST_F(PosixWorkersInMemory, write_where_loops_keep_their_credentials) {
  if (!posix::can_switch_users()) GTEST_SKIP() << "takes root";
  struct statfs found {};
  ASSERT_EQ(::statfs(path_.c_str(), &found), 0);
  if (found.f_type != TMPFS_MAGIC) GTEST_SKIP() << "/dev/shm is no tmpfs";
  open(AtOnce::Automatic);
  const auto write = [&] {
    return fs().write(caller(), file(), 0, Rope::copy_of(bytes_of("more")), Stability::Unstable);
  };
  EXPECT_TRUE(at_once(start(write())));
  const KeptCredentials kept;
  expect_offloaded(*plain, write());
}

TEST_F(PosixWorkers, tell_who_asks_for_it_how_long_an_operation_waited_for_them_and_took) {
  using Clock = std::chrono::steady_clock;
  open(AtOnce::Never);
  WorkerTime time;
  CallerContext follower = caller();
  follower.worker_time = &time;
  const auto before = Clock::now();
  const auto outcome = start(fs().attributes(follower, file()));
  const auto submitted = Clock::now();
  ASSERT_EQ(plain->held.size(), 1u);
  EXPECT_EQ(time.jobs, 0u);
  const auto begun = Clock::now();
  run_all();
  const auto ended = Clock::now();
  ASSERT_TRUE(outcome->has_value());
  EXPECT_EQ(time.jobs, 1u);
  EXPECT_EQ(time.refused, 0u);
  EXPECT_GE(time.waited, begun - submitted);
  EXPECT_GT(time.worked.count(), 0);
  EXPECT_LE(time.waited + time.worked, ended - before);
}

TEST_F(PosixWorkers, tell_who_asks_for_it_that_an_operation_was_refused_or_given_up) {
  open(AtOnce::Never);
  WorkerTime time;
  CallerContext follower = caller();
  follower.worker_time = &time;
  plain->full = true;
  const auto refused = start(fs().attributes(follower, file()));
  ASSERT_TRUE(refused->has_value());
  EXPECT_EQ((*refused)->error(), Status::Delay);
  EXPECT_EQ(time.refused, 1u);
  plain->full = false;
  const auto given_back = start(fs().attributes(follower, file()));
  plain->give_all_back();
  run_all();
  ASSERT_TRUE(given_back->has_value());
  EXPECT_EQ((*given_back)->error(), Status::Delay);
  EXPECT_EQ(time.refused, 2u);
  EXPECT_EQ(time.jobs, 0u);
  EXPECT_EQ(time.worked.count(), 0);
}

TEST_F(PosixWorkers, sync_apart_from_those_that_do_not) {
  open(AtOnce::Never);
  const Handle root = fs().root();
  expect_offloaded(*syncing, fs().commit(caller(), file(), 0, 0));
  for (const Stability stability : {Stability::DataSync, Stability::FileSync}) {
    Rope data = Rope::copy_of(bytes_of("more"));
    expect_offloaded(*syncing, fs().write(caller(), file(), 0, std::move(data), stability));
  }
  expect_offloaded(*syncing, fs().create(caller(), root, "new", {}));
  expect_offloaded(*syncing, fs().mkdir(caller(), root, "newer", {}));
  expect_offloaded(*syncing, fs().rename(caller(), root, "new", root, "newest"));
  expect_offloaded(*syncing, fs().remove(caller(), root, "newest"));
  expect_offloaded(*syncing, fs().rmdir(caller(), root, "newer"));
  SetAttributes mode;
  mode.mode = 0600;
  expect_offloaded(*syncing, fs().set_attributes(caller(), file(), mode, std::nullopt));
}

TEST_F(PosixWorkers, are_not_asked_for_what_a_disk_of_this_machine_has_in_memory) {
  open(AtOnce::Always);
  const Handle root = fs().root();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(start(fs().attributes(caller(), file()))->has_value());
    EXPECT_TRUE(start(fs().access(caller(), file(), access::kAll))->has_value());
    EXPECT_TRUE(start(fs().lookup(caller(), root, "file"))->has_value() ||
                !fs().uses_kernel_handles());
    run_all();
  }
}

// An access control list is read from the disk by the first check that needs it.
TEST_F(PosixWorkers, are_asked_for_the_first_permission_of_who_is_not_the_owner) {
  if (!posix::can_switch_users()) GTEST_SKIP() << "not root";
  open(AtOnce::Always);
  struct statfs about {};
  ASSERT_EQ(::statfs(path_.c_str(), &about), 0);
  if (posix::residence_of(about.f_type) == Residence::Memory) GTEST_SKIP() << "/tmp is in memory";
  const Credentials other{1234, 1234, {}};
  const auto others_access = [&] {
    return start(fs().access({loop(), other, &connection_}, file(), access::kAll));
  };
  const auto first = others_access();
  EXPECT_FALSE(first->has_value());
  EXPECT_FALSE(start(fs().read({loop(), other, &connection_}, file(), 0, 4))->has_value());
  run_all();
  EXPECT_TRUE(first->has_value());
  EXPECT_TRUE(others_access()->has_value());
}

// To close it takes the disk: what was removed is freed, what was written may be flushed.
TEST_F(PosixWorkers, close_what_a_loop_has_used_last) {
  const auto opened = [this](bool reads) {
    const std::string path = path_ / "file";
    auto object = posix::make_object({}, UniqueFd(::open(path.c_str(), O_PATH)), FileType::Regular,
                                     {plain, true});
    EXPECT_EQ(reads && object->open_reader().ok(), reads);
    return object;
  };
  const auto jobs_of = [this](auto use) {
    std::thread(use).join();  // no worker
    const std::size_t jobs = plain->held.size();
    run_all();
    return jobs;
  };
  EXPECT_EQ(jobs_of([&] { opened(false).reset(); }), 0u) << "only its path is open";
  EXPECT_EQ(jobs_of([&] { opened(true).reset(); }), 1u);
  EXPECT_EQ(jobs_of([&] {
              posix::ObjectRef removed = opened(false);
              std::filesystem::remove(path_ / "file");
            }),
            1u);
}

// No caller waits for the sync.
TEST_F(PosixWorkers, sync_what_leaves_the_cache_uncommitted) {
  open(AtOnce::Never);
  posix::ObjectCache::drop_all();
  EXPECT_TRUE(syncing->held.empty()) << "it is passed over once";
  std::thread([] { posix::ObjectCache::drop_all(); }).join();
  EXPECT_EQ(syncing->held.size(), 1u);
  run_all();
}

// One that does not answer would keep them, with all that they have yet to close.
TEST_F(PosixWorkers, do_not_close_what_another_store_has_open) {
  struct Other final : Executor {
    bool submit(Job&& job) override {
      files_open = open_files();
      return held.submit(std::move(job));
    }
    HeldExecutor held;
    std::size_t files_open = 0;
  };
  const auto read_file = [this](FileSystem& of) {
    const Handle file = good(of.lookup(caller(), of.root(), "file")).node.handle;
    good(of.read(caller(), file, 0, 4));
  };
  const auto other = std::make_shared<Other>();
  open(AtOnce::Never);
  good(fs().commit(caller(), file(), 0, 0));
  PosixFileSystem::Options options;
  options.root = path_;
  options.workers = other;
  auto opened = PosixFileSystem::open(options);
  ASSERT_TRUE(opened.ok());
  const std::unique_ptr<PosixFileSystem> its = *std::move(opened);
  other->held.at_once = true;
  read_file(*its);
  other->held.at_once = false;
  const std::size_t before = open_files();
  std::thread([this] {
    posix::prepare_worker_thread(plain.get());
    posix::ObjectCache::drop_all();
  }).join();
  EXPECT_EQ(plain->held.size(), 0u);
  ASSERT_EQ(other->held.held.size(), 1u);
  EXPECT_EQ(other->files_open, before) << "its own are closed behind what is passed on";
  const std::size_t held = open_files();
  EXPECT_LT(held, before);
  other->held.run_all();
  EXPECT_LT(open_files(), held);
  other->held.at_once = true;
}

TEST_F(PosixWorkers, close_what_nobody_uses_one_job_at_a_time) {
  open(AtOnce::Never);
  plain->full = true;
  for (int i = 0; i < 2; ++i) {
    fs().close_unused();
    fs().close_unused();
    EXPECT_EQ(plain->held.size(), 1u);
    run_all();
  }
  fs().close_unused();
  fs_.reset();
  run_all();
}

TEST_F(PosixWorkers, make_a_client_try_later_when_their_queue_is_full) {
  open(AtOnce::Never);
  plain->full = true;
  const auto refused = start(fs().attributes(caller(), file()));
  ASSERT_TRUE(refused->has_value());
  EXPECT_EQ((*refused)->error(), Status::Delay);
  plain->full = false;
  Rope data = Rope::copy_of(bytes_of("lost"));
  const auto given_back =
      start(fs().write(caller(), file(), 0, std::move(data), Stability::Unstable));
  plain->give_all_back();
  run_all();
  ASSERT_TRUE(given_back->has_value());
  EXPECT_EQ((*given_back)->error(), Status::Delay);
  EXPECT_EQ(text_of(good(fs().read(caller(), file(), 0, 4)).data.flatten().bytes()), "text");
}

TEST_F(PosixWorkers, know_how_much_data_waits_for_them) {
  open(AtOnce::Never);
  const auto written =
      start(fs().write(caller(), file(), 0, Rope::copy_of(bytes_of("data")), Stability::Unstable));
  const auto synced = start(
      fs().write(caller(), file(), 0, Rope::copy_of(bytes_of("more data")), Stability::FileSync));
  const auto read = start(fs().read(caller(), file(), 0, 4));
  ASSERT_EQ(plain->held.size(), 2u);
  EXPECT_EQ(plain->held[0].bytes, 4u);
  EXPECT_EQ(plain->held[1].bytes, 0u) << "what is read takes memory when it is read";
  ASSERT_EQ(syncing->held.size(), 1u);
  EXPECT_EQ(syncing->held[0].bytes, 9u);
  run_all();
  EXPECT_TRUE(written->has_value() && synced->has_value() && read->has_value());
}

TEST_F(PosixWorkers, sweep_the_inode_table_behind_the_answers) {
  open(AtOnce::Never, posix::HandleKind::Table);
  const auto look_up_new_file = [&](int number) {
    const std::string name = std::to_string(number);
    std::ofstream(path_ / name).put('x');
    const Handle root = fs().root();
    const auto found = start(fs().lookup(caller(), root, name));
    run_first();
    EXPECT_TRUE(found->has_value());
  };
  int number = 0;
  while (plain->held.empty() && number < 100) look_up_new_file(++number);
  ASSERT_EQ(plain->held.size(), 1u);
  EXPECT_EQ(plain->held.front().client, nullptr);
  // Only one at a time.
  Executor::Job sweep = std::move(plain->held.front());
  plain->held.pop_front();
  for (int i = 0; i < 100; ++i) look_up_new_file(++number);
  EXPECT_TRUE(plain->held.empty());
  fs_.reset();
  plain->run_all();
  sweep.work();
}

// Where one writes faster than the disk takes it.
TEST_F(PosixWorkers, leave_descriptors_to_others_while_files_wait_for_a_sync) {
  constexpr int kFiles = 250;
  cached_objects = 64;
  open(AtOnce::Never);
  const auto write = [&](const Handle& to) {
    return fs().write(caller(), to, 0, Rope::copy_of(bytes_of("more")), Stability::Unstable);
  };
  const std::size_t before = open_files();
  std::vector<Handle> files;
  std::vector<decltype(start(write(file())))> written;
  files.reserve(kFiles);
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = std::to_string(i);
    std::ofstream(path_ / name) << "text";
    const Handle root = fs().root();
    const auto found = start(fs().lookup(caller(), root, name));
    run_plain();
    ASSERT_TRUE(found->has_value() && (*found)->ok());
    files.push_back((**found)->node.handle);
    written.push_back(start(write(files.back())));
    run_plain();
  }
  EXPECT_LT(open_files() - before, 6 * cached_objects);
  EXPECT_FALSE(written.back()->has_value());
  run_all();
  for (const auto& each : written) ASSERT_TRUE(each->has_value() && (*each)->ok());
  EXPECT_EQ((*written.front())->value().committed, Stability::Unstable);
  EXPECT_EQ((*written.back())->value().committed, Stability::DataSync);
  EXPECT_EQ(good(write(files.back())).committed, Stability::Unstable) << "none waits any more";
}

// What is written stays in the cache until it is synced, at the pace of the disk.
TEST_F(PosixWorkers, sync_no_more_at_a_time_of_what_is_uncommitted_than_leaves_room_for_others) {
  constexpr int kFiles = 200;
  cached_objects = 256;
  open(AtOnce::Never);
  const Handle root = fs().root();
  const auto look_up = [&](const char* prefix, int number) {
    const std::string name = prefix + std::to_string(number);
    std::ofstream(path_ / name) << "text";
    const auto found = start(fs().lookup(caller(), root, name));
    run_plain();
    STAG_CHECK(found->has_value() && (*found)->ok());
    return (**found)->node.handle;
  };
  for (int i = 0; i < kFiles; ++i) {
    const Handle to = look_up("written", i);
    const auto written =
        start(fs().write(caller(), to, 0, Rope::copy_of(bytes_of("more")), Stability::Unstable));
    run_plain();
    ASSERT_TRUE(written->has_value() && (*written)->ok());
  }
  const std::size_t before = open_files();
  for (int i = 0; i < 4 * kFiles; ++i) look_up("other", i);
  EXPECT_LE(syncing->held.size(), cached_objects / 4 + 1);
  EXPECT_LE(open_files(), before + cached_objects);
  const std::size_t synced = syncing->held.size();
  EXPECT_GT(synced, 0u);
  syncing->run_all();
  for (int i = 0; i < 4 * kFiles; ++i) look_up("next", i);
  EXPECT_GT(syncing->held.size(), 0u) << "and the others behind them";
  run_all();
}

// A pool whose turn to close comes later than that of the calls.
class PosixClosings : public PosixWorkers {
 protected:
  // As a loop calls, which is no worker; and then what the workers were asked by a client.
  template <class Start>
  auto by_loop(Start start) {
    decltype(start()) outcome;
    std::thread([&] { outcome = start(); }).join();
    for (std::size_t left = plain->held.size(); left > 0; --left) {
      if (plain->held.front().client != nullptr) {
        run_first();
      } else {
        plain->held.push_back(std::move(plain->held.front()));
        plain->held.pop_front();
      }
    }
    STAG_CHECK(outcome->has_value() && (*outcome)->ok());
    return **std::move(*outcome);
  }
};

TEST_F(PosixClosings, leave_descriptors_to_others_while_files_wait_to_be_closed) {
  constexpr int kFiles = 500;
  cached_objects = 64;
  open(AtOnce::Always);
  if (!fs().uses_kernel_handles()) GTEST_SKIP() << "a table is for workers alone";
  const Handle root = fs().root();
  const std::size_t before = open_files();
  std::size_t most_waiting = 0;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = std::to_string(i);
    std::ofstream(path_ / name) << "text";
    const Handle found =
        by_loop([&] { return start(fs().lookup(caller(), root, name)); }).node.handle;
    by_loop([&] { return start(fs().read(caller(), found, 0, 4)); });
    most_waiting = std::max(most_waiting, plain->held.size());
  }
  EXPECT_GT(most_waiting, 0u) << "a loop closes none of them";
  EXPECT_LE(most_waiting, cached_objects / 4 + 1);
  EXPECT_LT(open_files() - before, 3 * cached_objects);
  run_all();
  const auto at_once = [&] { return start(fs().lookup(caller(), root, "0")); };
  decltype(at_once()) outcome;
  std::thread([&] { outcome = at_once(); }).join();
  EXPECT_TRUE(outcome->has_value()) << "none waits any more";
}

TEST_F(PosixWorkers, close_what_a_store_has_open_when_it_goes) {
  const std::size_t before = open_files();
  open(AtOnce::Never);
  const std::size_t during = open_files();
  EXPECT_GT(during, before);
  plain->full = true;
  fs_.reset();
  EXPECT_EQ(open_files(), during) << "nothing is closed by whoever lets the store go";
  plain->run_all();
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace stag::vfs
