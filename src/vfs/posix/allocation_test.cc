#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "testing/counted_new.h"
#include "testing/vfs/fixture.h"
#include "vfs/posix/posix.h"

namespace stag::vfs {
namespace {

// Frames that wait to be used again, of all sizes. A coroutine takes one of them, or one from the
// heap, and gives it back at its end.
std::size_t kept_frames() {
  std::size_t count = 0;
  for (const auto& list : stag::detail::frame_lists) count += list.count;
  return count;
}

class PosixAtOnce : public ::testing::Test {
 protected:
  explicit PosixAtOnce(std::string pattern = "/tmp/stag-at-once-XXXXXX") {
    STAG_CHECK(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    std::ofstream(folder / "file") << std::string(4096, 'x');
    PosixFileSystem::Options options;
    options.root = folder;
    options.at_once = posix::AtOnce::Always;
    auto opened = PosixFileSystem::open(options);
    STAG_CHECK(opened.ok());
    fs = *std::move(opened);
    root = fs->root();
    file = finish(loop, fs->lookup(caller(), root, "file"))->node.handle;
    STAG_CHECK(finish(loop, fs->read(caller(), file, 0, 4096)).ok());  // Opens the file.
  }
  ~PosixAtOnce() override {
    fs.reset();
    std::filesystem::remove_all(folder);
  }
  CallerContext caller() { return {loop, who}; }

  // Whether the answer is there when the call returns, and no coroutine was needed for it. `blocks`
  // is how much of the heap the answer itself takes.
  template <class Operate>
  static bool no_coroutine(Operate operate, std::size_t blocks = 0) {
    const std::size_t frames = kept_frames();
    const std::size_t heap = testing_allocations();
    const auto operation = operate();
    return operation.ready() && kept_frames() == frames && testing_allocations() <= heap + blocks;
  }
  static std::size_t testing_allocations() { return stag::testing::heap_allocations.load(); }

  testing::InlineLoop loop;
  const Credentials who{::geteuid(), ::getegid(), {}};
  std::filesystem::path folder;
  std::unique_ptr<PosixFileSystem> fs;
  Handle root;
  Handle file;
};

TEST_F(PosixAtOnce, attributes_and_access_start_no_coroutine) {
  EXPECT_TRUE(no_coroutine([&] { return fs->attributes(caller(), root); }));
  EXPECT_TRUE(no_coroutine([&] { return fs->attributes(caller(), file); }));
  EXPECT_TRUE(no_coroutine([&] { return fs->access(caller(), file, access::kAll); }));
}

TEST_F(PosixAtOnce, lookup_starts_no_coroutine) {
  if (!fs->uses_kernel_handles()) GTEST_SKIP() << "no right to open file handles: a table has them";
  // The kernel answers from memory but for a moment in which anybody renames or mounts something.
  int tries = 0;
  while (tries < 100 && !no_coroutine([&] { return fs->lookup(caller(), root, "file"); })) ++tries;
  EXPECT_LT(tries, 100);
}

TEST_F(PosixAtOnce, read_starts_no_coroutine) {
  std::optional<Operation<ReadResult>> first = fs->read(caller(), file, 0, 4096);
  if (!first->ready()) GTEST_SKIP() << "the file system below does not read without waiting";
  first.reset();
  EXPECT_TRUE(no_coroutine([&] { return fs->read(caller(), file, 0, 4096); }, 1));
}

// On a disk a WRITE may wait for memory; where the files are memory themselves it never does.
class PosixAtOnceInMemory : public PosixAtOnce {
 protected:
  PosixAtOnceInMemory() : PosixAtOnce(std::string(kMemory) + "/stag-at-once-XXXXXX") {}
  static bool is_memory() {
    struct statfs found {};
    return ::statfs(kMemory, &found) == 0 && found.f_type == TMPFS_MAGIC;
  }
  static constexpr const char* kMemory = "/dev/shm";
};

TEST_F(PosixAtOnceInMemory, write_starts_no_coroutine) {
  if (!is_memory()) GTEST_SKIP() << kMemory << " is no memory here";
  const Rope data = Rope::copy_of(bytes_of("12345678"));
  for (const Stability stability : {Stability::Unstable, Stability::FileSync}) {
    // Opens the file for writing.
    ASSERT_TRUE(finish(loop, fs->write(caller(), file, 0, data, stability)).ok());
    EXPECT_TRUE(no_coroutine([&] { return fs->write(caller(), file, 0, data, stability); }));
  }
}

TEST_F(PosixAtOnce, other_operations_start_a_coroutine) {
  const auto operation = fs->readlink(caller(), file);
  EXPECT_FALSE(operation.ready());
}

}  // namespace
}  // namespace stag::vfs
