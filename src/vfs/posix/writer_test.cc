// How long files stay open for writing: meanwhile they cannot be executed on the server.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "testing/vfs/posix_backend.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/object.h"
#include "vfs/posix/posix.h"

namespace stag::vfs {
namespace {

namespace files = std::filesystem;

using testing::finish;
using testing::PosixBackend;

// By this process, which here is the server.
bool is_open_for_writing(const files::path& path) {
  for (const auto& entry : files::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (files::read_symlink(entry.path(), gone) != path) continue;
    const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFL);
    if ((flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY) return true;
  }
  return false;
}

class PosixWriter : public ::testing::Test {
 protected:
  explicit PosixWriter(std::uint32_t mode = 0755) : backend_({}) {
    CreateHow how;
    how.attributes.mode = mode;
    const auto made = finish(loop_, fs().create(caller_, fs().root(), "file", how));
    STAG_CHECK(made.ok());
    file_ = made->node.handle;
  }
  FileSystem& fs() { return backend_.fs(); }
  files::path path() const { return backend_.export_path() / "file"; }
  bool is_open() const { return is_open_for_writing(path()); }
  std::optional<Status> write(Stability stability) {
    const auto written =
        finish(loop_, fs().write(caller_, file_, 0, Rope::copy_of(bytes_of("data")), stability));
    return written ? std::nullopt : std::optional(written.error());
  }
  std::optional<Status> commit() {
    const auto committed = finish(loop_, fs().commit(caller_, file_, 0, 0));
    return committed ? std::nullopt : std::optional(committed.error());
  }
  // As the server does every ten seconds.
  void pass_rounds(int rounds) {
    for (int i = 0; i < rounds; ++i) fs().close_unused();
  }

  PosixBackend backend_;
  testing::InlineLoop loop_;
  const Credentials user_{::geteuid(), ::getegid(), {}};
  const CallerContext caller_{loop_, user_};
  Handle file_;
};

TEST_F(PosixWriter, is_closed_where_nobody_has_used_it_for_a_round) {
  const auto used = [this](const char* how) {
    SCOPED_TRACE(how);
    EXPECT_TRUE(is_open());
    pass_rounds(1);
    EXPECT_TRUE(is_open());
    pass_rounds(1);
    EXPECT_FALSE(is_open());
  };
  used("created");
  EXPECT_EQ(write(Stability::FileSync), std::nullopt);
  used("written");
  SetAttributes cut;
  cut.size = 0;
  ASSERT_TRUE(finish(loop_, fs().set_attributes(caller_, file_, cut, std::nullopt)).ok());
  used("cut");
}

TEST_F(PosixWriter, stays_open_while_it_is_used) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(write(Stability::FileSync), std::nullopt);
    pass_rounds(1);
    EXPECT_TRUE(is_open());
  }
}

TEST_F(PosixWriter, stays_open_until_what_it_has_written_is_committed) {
  EXPECT_EQ(write(Stability::Unstable), std::nullopt);
  EXPECT_EQ(write(Stability::FileSync), std::nullopt);
  pass_rounds(10);
  EXPECT_TRUE(is_open());
  EXPECT_EQ(commit(), std::nullopt);
  EXPECT_FALSE(is_open());
}

// RFC 1813 4.4: the owner may write a file even if its mode denies that. Without root the system
// does not open one.
class ReadOnlyWriter : public PosixWriter {
 public:
  explicit ReadOnlyWriter(std::uint32_t mode) : PosixWriter(mode) {}
  void TestBody() override {}

  void is_written_and_committed_again_and_again() {
    STAG_CHECK(!posix::can_switch_users());
    for (int i = 0; i < 3; ++i) {
      STAG_CHECK(write(Stability::Unstable) == std::nullopt);
      STAG_CHECK(commit() == std::nullopt);
      pass_rounds(2);
    }
    pass_rounds(10);
    STAG_CHECK(!is_open());
    STAG_CHECK(commit() == std::nullopt);
  }
  void is_written_when_it_becomes_one() {
    STAG_CHECK(
        finish(loop_, fs().set_attributes(caller_, file_, testing::mode_of(0444), std::nullopt))
            .ok());
    posix::ObjectCache::drop_all();
    STAG_CHECK(write(Stability::FileSync) == std::nullopt);
  }
};

class WithoutRoot : public ::testing::Test {
 protected:
  // Whether users can be switched is found out once: in a process of its own, that has not asked.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  [[noreturn]] static void as_nobody(std::uint32_t mode, void (ReadOnlyWriter::*test)()) {
    if (::geteuid() == 0) STAG_CHECK(::setgid(65534) == 0 && ::setuid(65534) == 0);
    {
      ReadOnlyWriter writer(mode);
      (writer.*test)();
    }
    ::_exit(0);
  }
};

TEST_F(WithoutRoot, a_file_that_is_made_read_only_can_be_written_behind_its_COMMIT) {
  EXPECT_EXIT(as_nobody(0444, &ReadOnlyWriter::is_written_and_committed_again_and_again),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(WithoutRoot, a_file_without_permissions_can_be_written_and_committed) {
  EXPECT_EXIT(as_nobody(0, &ReadOnlyWriter::is_written_and_committed_again_and_again),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(WithoutRoot, a_file_that_becomes_read_only_stays_open_where_others_are_closed) {
  EXPECT_EXIT(as_nobody(0644, &ReadOnlyWriter::is_written_when_it_becomes_one),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stag::vfs
