// Disks that fail: a sync, by fsync(2) or by a flag of pwritev2(2), tells of it once. And what
// cannot be synced, because it cannot be opened.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "testing/vfs/posix_backend.h"
#include "vfs/posix/losses.h"
#include "vfs/posix/object.h"
#include "vfs/posix/posix.h"

namespace {

// Takes the place of the system's in this program.
struct Disk {
  std::atomic<int> next_synchronous_write{0};  // its errno; 0: it succeeds
  std::atomic<bool> one_succeeds_before{false};
  std::atomic<int> every_write{0};
  std::atomic<int> next_sync{0};
  std::atomic<int> next_data_sync{0};
  std::atomic<int> opening_to_read{0};  // its errno, where the server opens what it has a path of
  std::atomic<int> times{0};            // so often
  // Of synchronous writes that meet there: what each has written is lost.
  std::atomic<std::latch*> losing{nullptr};
  std::mutex mutex;
  std::vector<ino_t> synced;
  std::set<int> told;  // of these losses, as the kernel tells each open descriptor once
};
Disk& disk() {
  static Disk one;
  return one;
}

template <class Function>
Function* system_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t pwritev2(int fd, const iovec* vectors, int count, off_t offset, int flags) {
  static auto* const write = system_function<decltype(pwritev2)>("pwritev2");
  if (const int error = disk().every_write) {
    errno = error;
    return -1;
  }
  if ((flags & (RWF_SYNC | RWF_DSYNC)) != 0) {
    const bool fails = !disk().one_succeeds_before.exchange(false);
    if (const int error = fails ? disk().next_synchronous_write.exchange(0) : 0) {
      errno = error;
      return -1;
    }
    if (std::latch* const losing = disk().losing) {
      losing->arrive_and_wait();
      const std::scoped_lock lock(disk().mutex);
      if (disk().told.insert(fd).second) {
        errno = EIO;
        return -1;
      }
    }
  }
  return write(fd, vectors, count, offset, flags);
}

static int sync_by(int (*sync)(int), int fd, std::atomic<int>& next) {
  struct stat file {};
  if (::fstat(fd, &file) == 0) {
    const std::scoped_lock lock(disk().mutex);
    disk().synced.push_back(file.st_ino);
  }
  if (const int error = next.exchange(0)) {
    errno = error;
    return -1;
  }
  return sync(fd);
}

extern "C" int fsync(int fd) {
  static auto* const sync = system_function<decltype(fsync)>("fsync");
  return sync_by(sync, fd, disk().next_sync);
}

extern "C" int fdatasync(int fd) {
  static auto* const sync = system_function<decltype(fdatasync)>("fdatasync");
  return sync_by(sync, fd, disk().next_data_sync);
}

extern "C" int open(const char* path, int flags, ...) {
  static auto* const open_file = system_function<decltype(open)>("open");
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  const bool reads = (flags & (O_ACCMODE | O_PATH)) == O_RDONLY;
  if (reads && std::string_view(path).starts_with("/proc/self/fd/") && disk().times.load() > 0) {
    --disk().times;
    errno = disk().opening_to_read;
    return -1;
  }
  return open_file(path, flags, mode);
}

namespace stag::vfs {
namespace {

namespace files = std::filesystem;

using testing::finish;
using testing::PosixBackend;
using testing::PosixKind;

class FailingDisk : public ::testing::Test {
 protected:
  FailingDisk() : backend_(kind()) {
    const auto made = finish(loop_, fs().create(caller_, fs().root(), "file", {}));
    STAG_CHECK(made.ok());
    file_ = made->node.handle;
    inode_ = made->node.attributes.file_id;
  }
  static PosixKind kind() {
    PosixKind kind;
    kind.durable_names = true;
    return kind;
  }
  FileSystem& fs() { return few_ != nullptr ? *few_ : backend_.fs(); }
  Outcome<WriteResult> write(Stability stability) {
    return finish(loop_, fs().write(caller_, file_, 0, Rope::copy_of(bytes_of("data")), stability));
  }
  // The server has not opened it to read it.
  Handle new_folder(const char* name) {
    const auto made = finish(loop_, fs().mkdir(caller_, fs().root(), name, {}));
    STAG_CHECK(made.ok());
    return made->node.handle;
  }
  void fail_to_open(int error, int times) {
    disk().opening_to_read = error;
    disk().times = times;
  }
  template <class T>
  std::optional<Status> status(Operation<T> operation) {
    const Outcome<T> result = finish(loop_, std::move(operation));
    return result ? std::nullopt : std::optional(result.error());
  }
  // Of everything that changes the names in a folder; another one has "gone".
  std::vector<std::optional<Status>> change_names(const Handle& folder, const Handle& other) {
    return {status(fs().create(caller_, folder, "file", {})),
            status(fs().mkdir(caller_, folder, "folder", {})),
            status(fs().symlink(caller_, folder, "symlink", "target", {})),
            status(fs().mknod(caller_, folder, "fifo", {}, {})),
            status(fs().link(caller_, file_, folder, "link")),
            status(fs().rename(caller_, folder, "link", folder, "moved")),
            status(fs().rename(caller_, other, "gone", folder, "come")),
            status(fs().rename(caller_, folder, "come", other, "gone")),
            status(fs().rmdir(caller_, folder, "folder")),
            status(fs().remove(caller_, folder, "file"))};
  }
  std::set<std::string> names_in(const char* folder) const {
    std::set<std::string> names;
    for (const auto& entry : files::directory_iterator(backend_.export_path() / folder))
      names.insert(entry.path().filename());
    return names;
  }
  std::unique_ptr<PosixFileSystem> open_again(std::size_t cached_objects = 0,
                                              std::shared_ptr<Executor> sync_workers = {}) {
    PosixFileSystem::Options options;
    options.root = backend_.export_path();
    options.state_directory = backend_.outside() / "state";
    options.cached_objects = cached_objects;
    options.sync_workers = std::move(sync_workers);
    auto opened = PosixFileSystem::open(options);
    STAG_CHECK(opened.ok());
    return *std::move(opened);
  }
  // Four in each shard.
  void use_few_objects() {
    few_ = open_again(64);
    const auto found = finish(loop_, few_->lookup(caller_, few_->root(), "file"));
    STAG_CHECK(found.ok());
    file_ = found->node.handle;
    disk().synced.clear();
  }
  void write_new_file() {
    const std::string name = "new" + std::to_string(++new_files_);
    const auto made = finish(loop_, fs().create(caller_, fs().root(), name, {}));
    STAG_CHECK(made.ok());
    const Handle file = made->node.handle;
    STAG_CHECK(finish(loop_, fs().write(caller_, file, 0, Rope::copy_of(bytes_of("data")),
                                        Stability::Unstable))
                   .ok());
  }
  void lose_once() {
    disk().next_data_sync = EIO;
    EXPECT_FALSE(finish(loop_, fs().commit(caller_, file_, 0, 0)).ok());
  }
  static bool is_synced(std::uint64_t inode) {
    const std::scoped_lock lock(disk().mutex);
    return std::find(disk().synced.begin(), disk().synced.end(), inode) != disk().synced.end();
  }

  PosixBackend backend_;
  std::unique_ptr<PosixFileSystem> few_;
  int new_files_ = 0;
  testing::InlineLoop loop_;
  const Credentials owner_{::geteuid(), ::getegid(), {}};
  const CallerContext caller_{loop_, owner_};
  Handle file_;
  std::uint64_t inode_ = 0;
};

// The kernel tells of a loss once, to the descriptor that syncs first: the COMMIT of what was lost
// would succeed.
TEST_F(FailingDisk, that_tells_a_synchronous_WRITE_of_a_loss_changes_the_verifier) {
  for (const Stability stability : {Stability::DataSync, Stability::FileSync})
    for (const auto& [error, status] :
         {std::pair(EIO, Status::Io), std::pair(ENOSPC, Status::NoSpace),
          std::pair(EDQUOT, Status::QuotaExceeded), std::pair(ENODATA, Status::Io),
          std::pair(ETIMEDOUT, Status::Io), std::pair(ENOLINK, Status::Io),
          std::pair(ENOMEM, Status::Io)}) {
      ASSERT_TRUE(write(Stability::Unstable).ok());
      const std::uint64_t epoch = fs().write_verifier_epoch();
      disk().next_synchronous_write = error;
      const auto written = write(stability);
      ASSERT_FALSE(written.ok());
      EXPECT_EQ(written.error(), status);
      EXPECT_NE(fs().write_verifier_epoch(), epoch);
    }
}

// The rope takes several calls.
TEST_F(FailingDisk,
       that_tells_the_second_part_of_a_synchronous_WRITE_of_a_loss_changes_the_verifier) {
  Rope data;
  for (int i = 0; i < 100; ++i) data.append(Rope::copy_of(bytes_of("data")));
  for (const int error : {ENODATA, ETIMEDOUT, ENOSPC}) {
    const std::uint64_t epoch = fs().write_verifier_epoch();
    disk().one_succeeds_before = true;
    disk().next_synchronous_write = error;
    EXPECT_FALSE(finish(loop_, fs().write(caller_, file_, 0, data, Stability::FileSync)).ok());
    EXPECT_NE(fs().write_verifier_epoch(), epoch);
  }
}

// What the write itself may not do tells of nothing else.
TEST_F(FailingDisk, that_refuses_a_synchronous_WRITE_has_lost_nothing) {
  for (const int error : {EFBIG, EINVAL, EPERM}) {
    const std::uint64_t epoch = fs().write_verifier_epoch();
    disk().next_synchronous_write = error;
    EXPECT_FALSE(write(Stability::FileSync).ok());
    EXPECT_EQ(fs().write_verifier_epoch(), epoch);
  }
}

TEST_F(FailingDisk, that_loses_two_synchronous_WRITEs_at_a_time_tells_both) {
  ASSERT_TRUE(write(Stability::Unstable).ok());
  std::latch both(2);
  disk().losing = &both;
  std::atomic<int> failed = 0;
  const auto write_other = [&](std::uint64_t offset) {
    testing::InlineLoop loop;
    const CallerContext caller{loop, owner_};
    const auto written = finish(
        loop,
        fs().write(caller, file_, offset, Rope::copy_of(bytes_of("data")), Stability::FileSync));
    if (!written) ++failed;
  };
  std::thread other(write_other, 4096);
  write_other(8192);
  other.join();
  disk().losing = nullptr;
  disk().told.clear();
  EXPECT_EQ(failed, 2);
}

// Otherwise a user over quota would have all others write everything again, for ever.
TEST_F(FailingDisk, that_has_no_room_for_a_synchronous_WRITE_has_lost_nothing) {
  for (const auto& [error, status] :
       {std::pair(ENOSPC, Status::NoSpace), std::pair(EDQUOT, Status::QuotaExceeded)}) {
    const std::uint64_t epoch = fs().write_verifier_epoch();
    disk().every_write = error;
    const auto written = write(Stability::FileSync);
    disk().every_write = 0;
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error(), status);
    EXPECT_EQ(fs().write_verifier_epoch(), epoch);
  }
}

TEST_F(FailingDisk, is_remembered_when_the_folder_is_opened_again) {
  const std::uint64_t before = fs().write_verifier_epoch();
  disk().next_sync = EIO;
  EXPECT_FALSE(
      finish(loop_, fs().set_attributes(caller_, file_, testing::mode_of(0600), std::nullopt))
          .ok());
  EXPECT_NE(fs().write_verifier_epoch(), before);
  backend_.restart();
  EXPECT_NE(fs().write_verifier_epoch(), before) << "what was written before is lost still";
}

// The kernel tells of a loss once: to whom syncs first, by whichever of the two folders.
TEST_F(FailingDisk, that_loses_data_of_one_folder_changes_the_verifier_of_each_on_it) {
  const auto other = open_again();
  ASSERT_TRUE(write(Stability::Unstable).ok());
  const std::uint64_t epoch = fs().write_verifier_epoch();
  disk().next_data_sync = EIO;
  const auto same = finish(loop_, other->lookup(caller_, other->root(), "file"));
  ASSERT_TRUE(same.ok());
  EXPECT_FALSE(finish(loop_, other->commit(caller_, same->node.handle, 0, 0)).ok());
  EXPECT_TRUE(finish(loop_, fs().commit(caller_, file_, 0, 0)).ok());
  EXPECT_NE(fs().write_verifier_epoch(), epoch);
}

// Otherwise clients that write to a good disk would write again for ever.
TEST_F(FailingDisk, changes_no_verifier_of_another_file_system) {
  PosixKind in_memory = kind();
  in_memory.under = testing::kMemory;
  PosixBackend other(in_memory);
  if (other.fs().handle_space() == fs().handle_space()) GTEST_SKIP() << "both are on one";
  const std::uint64_t epoch = other.fs().write_verifier_epoch();
  lose_once();
  EXPECT_EQ(other.fs().write_verifier_epoch(), epoch);
}

// As the disk that lost data and comes back under another number.
TEST_F(FailingDisk, has_told_no_epoch_that_a_file_system_begins_with_that_was_not_there) {
  const std::uint64_t before = fs().write_verifier_epoch();
  lose_once();
  static std::uint64_t no_device = std::uint64_t{1} << 60;
  EXPECT_GT(posix::Losses::of(++no_device).epoch(), before);
}

// Perhaps no other process has the file open, and then the kernel may forget the error that it
// would have reported.
TEST_F(FailingDisk, is_synced_before_a_file_leaves_the_cache_with_what_is_uncommitted) {
  use_few_objects();
  ASSERT_TRUE(write(Stability::Unstable).ok());
  const std::uint64_t epoch = fs().write_verifier_epoch();
  disk().next_data_sync = ENODATA;
  for (int i = 0; i < 5000 && !is_synced(inode_); ++i) write_new_file();
  EXPECT_TRUE(is_synced(inode_));
  EXPECT_NE(fs().write_verifier_epoch(), epoch);
}

TEST_F(FailingDisk, is_not_synced_for_what_leaves_the_cache_behind_its_COMMIT_or_is_removed) {
  use_few_objects();
  ASSERT_TRUE(write(Stability::Unstable).ok());
  ASSERT_TRUE(finish(loop_, fs().commit(caller_, file_, 0, 0)).ok());
  disk().synced.clear();
  posix::ObjectCache::drop_all();
  EXPECT_FALSE(is_synced(inode_));
  ASSERT_TRUE(write(Stability::Unstable).ok());
  ASSERT_TRUE(finish(loop_, fs().remove(caller_, fs().root(), "file")).ok());
  EXPECT_FALSE(is_synced(inode_));
}

TEST_F(FailingDisk, has_files_with_what_is_uncommitted_stay_in_the_cache_for_longer) {
  use_few_objects();
  ASSERT_TRUE(write(Stability::Unstable).ok());
  for (int i = 0; i < 3; ++i) {
    posix::ObjectCache::drop_all();
    EXPECT_FALSE(is_synced(inode_));
    ASSERT_TRUE(finish(loop_, fs().attributes(caller_, file_)).ok());  // It is used.
  }
  posix::ObjectCache::drop_all();
  posix::ObjectCache::drop_all();
  EXPECT_TRUE(is_synced(inode_)) << "its second turn";
}

// To sync all of it may take as long as there is data.
TEST_F(FailingDisk, has_clients_write_again_when_a_folder_is_closed_with_what_is_uncommitted) {
  const auto epoch_behind_another_start = [this] {
    backend_.restart();
    return fs().write_verifier_epoch();
  };
  const std::uint64_t before = fs().write_verifier_epoch();
  ASSERT_TRUE(write(Stability::FileSync).ok());
  EXPECT_EQ(epoch_behind_another_start(), before);
  ASSERT_TRUE(write(Stability::Unstable).ok());
  ASSERT_TRUE(finish(loop_, fs().commit(caller_, file_, 0, 0)).ok());
  EXPECT_EQ(epoch_behind_another_start(), before);
  ASSERT_TRUE(write(Stability::Unstable).ok());
  EXPECT_NE(epoch_behind_another_start(), before);
}

TEST_F(FailingDisk, has_the_size_that_CREATE_sets_before_its_answer_RFC_1813_4_8) {
  ASSERT_TRUE(write(Stability::Unstable).ok());
  disk().synced.clear();
  CreateHow how;
  how.mode = CreateMode::Unchecked;
  how.attributes.size = 0;
  ASSERT_TRUE(finish(loop_, fs().create(caller_, fs().root(), "file", how)).ok());
  EXPECT_TRUE(is_synced(inode_));
}

// Each job has a thread of its own, which was started by one who acts as a user.
class UsersExecutor final : public Executor {
 public:
  bool submit(Job&& job) override {
    std::thread([&job] {
      ::setfsgid(1000);
      ::setfsuid(1000);
      job.work();
      job.work = {};
    }).join();
    job.deliver(job.context, std::move(job.done));
    return true;
  }
};

TEST_F(FailingDisk, has_the_mode_that_SETATTR_sets_whoever_has_started_the_thread_that_does_it) {
  if (PosixFileSystem::serves_all_as_one()) GTEST_SKIP() << "needs root";
  const files::path path = backend_.export_path() / "another's";
  std::ofstream(path).put('x');
  files::permissions(path, files::perms(0600));
  STAG_CHECK(::chown(path.c_str(), 2000, 2000) == 0);
  few_ = open_again(64, std::make_shared<UsersExecutor>());
  const auto found = finish(loop_, fs().lookup(caller_, fs().root(), "another's"));
  ASSERT_TRUE(found.ok());
  const Handle file = found->node.handle;
  disk().synced.clear();
  const Credentials owner{2000, 2000, {}};
  EXPECT_EQ(status(fs().set_attributes({loop_, owner}, file, testing::mode_of(0640), std::nullopt)),
            std::nullopt);
  EXPECT_TRUE(is_synced(found->node.attributes.file_id));
}

class UnreadableFolder : public FailingDisk {
 protected:
  // Another process makes its own files: the server has not opened it.
  UnreadableFolder() : folder_(new_folder("folder")), other_(new_folder("other")) {
    files::create_directory(backend_.export_path() / "folder" / "kept");
    files::create_directory(backend_.export_path() / "other" / "gone");
  }
  ~UnreadableFolder() override { fail_to_open(0, 0); }
  const Handle folder_;
  const Handle other_;
};

// RFC 1813 3.3.8 to 3.3.15: what was done is NFS3_OK.
TEST_F(UnreadableFolder, is_changed_and_answered_so) {
  fail_to_open(EACCES, 1000);
  for (const auto& status : change_names(folder_, other_)) EXPECT_EQ(status, std::nullopt);
  EXPECT_EQ(names_in("folder"), (std::set<std::string>{"kept", "symlink", "fifo", "moved"}));
}

TEST_F(UnreadableFolder, is_not_changed_for_want_of_descriptors) {
  fail_to_open(EMFILE, 1000);
  for (const auto& status : {status(fs().create(caller_, folder_, "new", {})),
                             status(fs().mkdir(caller_, folder_, "new", {})),
                             status(fs().link(caller_, file_, folder_, "new")),
                             status(fs().rename(caller_, folder_, "kept", folder_, "new")),
                             status(fs().rename(caller_, folder_, "kept", fs().root(), "new")),
                             status(fs().rename(caller_, fs().root(), "file", folder_, "new")),
                             status(fs().rmdir(caller_, folder_, "kept"))})
    EXPECT_EQ(status, Status::TooManyObjects);
  EXPECT_EQ(names_in("folder"), std::set<std::string>{"kept"});
  EXPECT_TRUE(files::exists(backend_.export_path() / "file"));
}

TEST_F(UnreadableFolder, is_opened_with_the_descriptor_of_what_is_not_in_use) {
  fail_to_open(EMFILE, 1);
  EXPECT_EQ(status(fs().create(caller_, folder_, "file", {})), std::nullopt);
}

// RFC 1813 4.8 wants it durable, which a file that nobody can open just now would not be.
TEST_F(FailingDisk, has_files_that_are_not_changed_for_want_of_descriptors) {
  const files::path path = backend_.export_path() / "closed";
  std::ofstream(path).put('x');
  files::permissions(path, files::perms(0600));
  const auto found = finish(loop_, fs().lookup(caller_, fs().root(), "closed"));
  ASSERT_TRUE(found.ok());
  const Handle closed = found->node.handle;
  const auto change_all = [&]() -> std::vector<std::optional<Status>> {
    SetAcls acls;
    acls.access = Acl::of_mode(0640);
    return {status(fs().set_attributes(caller_, closed, testing::mode_of(0640), std::nullopt)),
            status(fs().set_acls(caller_, closed, acls)),
            status(fs().set_xattr(caller_, closed, "name", "value", XattrMode::Either)),
            status(fs().remove_xattr(caller_, closed, "name"))};
  };
  for (const auto& [error, expected] :
       {std::pair(EMFILE, Status::TooManyObjects), std::pair(EAGAIN, Status::Delay)}) {
    fail_to_open(error, 1000);
    for (const auto& status : change_all()) EXPECT_EQ(status, expected);
    fail_to_open(0, 0);
    EXPECT_EQ(files::status(path).permissions(), files::perms(0600));
    EXPECT_TRUE(finish(loop_, fs().list_xattrs(caller_, closed))->empty());
  }
}

TEST_F(FailingDisk, has_a_file_of_exclusive_CREATE_that_may_not_be_read) {
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  how.attributes.mode = 0200;
  fail_to_open(EACCES, 1000);
  disk().synced.clear();
  const auto made = finish(loop_, fs().create(caller_, fs().root(), "exclusive", how));
  fail_to_open(0, 0);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(is_synced(made->node.attributes.file_id));
}

}  // namespace
}  // namespace stag::vfs
