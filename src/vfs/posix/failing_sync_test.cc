// Disks that fail: a sync, by fsync(2) or by a flag of pwritev2(2), tells of it once.
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

#include "testing/vfs/posix_backend.h"
#include "vfs/posix/posix.h"

namespace {

// Takes the place of the system's in this program.
struct Disk {
  std::atomic<int> next_synchronous_write{0};  // its errno; 0: it succeeds
  std::atomic<int> every_write{0};
  std::atomic<int> next_sync{0};
  std::mutex mutex;
  std::vector<ino_t> synced;
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
  if ((flags & (RWF_SYNC | RWF_DSYNC)) != 0)
    if (const int error = disk().next_synchronous_write.exchange(0)) {
      errno = error;
      return -1;
    }
  return write(fd, vectors, count, offset, flags);
}

extern "C" int fsync(int fd) {
  static auto* const sync = system_function<decltype(fsync)>("fsync");
  struct stat file {};
  if (::fstat(fd, &file) == 0) {
    const std::scoped_lock lock(disk().mutex);
    disk().synced.push_back(file.st_ino);
  }
  if (const int error = disk().next_sync.exchange(0)) {
    errno = error;
    return -1;
  }
  return sync(fd);
}

namespace stag::vfs {
namespace {

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
  FileSystem& fs() { return backend_.fs(); }
  Outcome<WriteResult> write(Stability stability) {
    return finish(loop_, fs().write(caller_, file_, 0, Rope::copy_of(bytes_of("data")), stability));
  }
  static bool is_synced(std::uint64_t inode) {
    const std::scoped_lock lock(disk().mutex);
    return std::find(disk().synced.begin(), disk().synced.end(), inode) != disk().synced.end();
  }

  PosixBackend backend_;
  testing::InlineLoop loop_;
  const Credentials owner_{::geteuid(), ::getegid(), {}};
  const CallerContext caller_{loop_, owner_};
  Handle file_;
  std::uint64_t inode_ = 0;
};

// The kernel tells of a loss once, to whoever syncs first: the COMMIT of what was lost would
// succeed.
TEST_F(FailingDisk, that_tells_a_synchronous_WRITE_of_a_loss_changes_the_verifier) {
  for (const Stability stability : {Stability::DataSync, Stability::FileSync})
    for (const auto& [error, status] :
         {std::pair(EIO, Status::Io), std::pair(ENOSPC, Status::NoSpace),
          std::pair(EDQUOT, Status::QuotaExceeded)}) {
      ASSERT_TRUE(write(Stability::Unstable).ok());
      const std::uint64_t epoch = fs().write_verifier_epoch();
      disk().next_synchronous_write = error;
      const auto written = write(stability);
      ASSERT_FALSE(written.ok());
      EXPECT_EQ(written.error(), status);
      EXPECT_NE(fs().write_verifier_epoch(), epoch);
    }
}

// Else whoever is over his quota would have all others write everything again, for ever.
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

TEST_F(FailingDisk, has_the_size_that_CREATE_sets_before_its_answer_RFC_1813_4_8) {
  ASSERT_TRUE(write(Stability::Unstable).ok());
  disk().synced.clear();
  CreateHow how;
  how.mode = CreateMode::Unchecked;
  how.attributes.size = 0;
  ASSERT_TRUE(finish(loop_, fs().create(caller_, fs().root(), "file", how)).ok());
  EXPECT_TRUE(is_synced(inode_));
}

}  // namespace
}  // namespace stag::vfs
