// Locks of the server against local programs, and theirs against it.
#include <fcntl.h>

#include <cerrno>
#include <future>
#include <string>

#include "testing/vfs/posix_backend.h"

namespace stag::vfs {
namespace {

using testing::finish;

struct flock flock_of(short type, off_t first, off_t length) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = length;
  return lock;
}

class PosixLocalLocks : public ::testing::Test {
 protected:
  PosixLocalLocks() {
    file_ = finish(loop_, fs().create(caller(), fs().root(), "file", {}))->node.handle;
    program_ = ::open((backend_.export_path() / "file").c_str(), O_RDWR | O_CLOEXEC);
  }
  ~PosixLocalLocks() override { ::close(program_); }
  void SetUp() override {
    auto opened = finish(loop_, fs().local_locks(caller(), file_));
    if (!opened && opened.error() == Status::NotSupported) GTEST_SKIP() << "a disk elsewhere";
    ASSERT_TRUE(opened.ok());
    server_ = *std::move(opened);
  }
  FileSystem& fs() { return backend_.fs(); }
  CallerContext caller() { return {loop_, root_}; }
  bool program_locks(short type, off_t first, off_t length) {
    struct flock lock = flock_of(type, first, length);
    return ::fcntl(program_, F_OFD_SETLK, &lock) == 0;
  }
  bool server_locks(LockMode mode, LocalRange range) {
    const auto set = server_->set(range, mode);
    EXPECT_TRUE(set.ok());
    return set.ok() && !*set;
  }

  testing::InlineLoop loop_;
  const Credentials root_{0, 0, {}};
  testing::PosixBackend backend_{testing::PosixKind{}};
  Handle file_;
  int program_ = -1;
  std::unique_ptr<LocalLocks> server_;
};

TEST_F(PosixLocalLocks, keep_programs_out_until_they_are_given_back) {
  ASSERT_TRUE(server_locks(LockMode::Exclusive, {10, 19}));
  EXPECT_FALSE(program_locks(F_RDLCK, 19, 5));
  EXPECT_TRUE(program_locks(F_WRLCK, 20, 5)) << "next to it";
  ASSERT_TRUE(server_locks(LockMode::Shared, {10, 19}));
  EXPECT_TRUE(program_locks(F_RDLCK, 10, 1));
  EXPECT_FALSE(program_locks(F_WRLCK, 10, 1));
  ASSERT_TRUE(server_locks(LockMode::None, {10, 14}));
  EXPECT_TRUE(program_locks(F_WRLCK, 10, 5));
  EXPECT_FALSE(program_locks(F_WRLCK, 15, 1));
  server_.reset();
  EXPECT_TRUE(program_locks(F_WRLCK, 0, 0));
}

TEST_F(PosixLocalLocks, are_seen_with_their_range_where_programs_have_them) {
  ASSERT_TRUE(program_locks(F_RDLCK, 100, 50));
  EXPECT_TRUE(server_locks(LockMode::Shared, {0, 200})) << "readers share";
  const auto refused = server_->set({0, ~std::uint64_t{0}}, LockMode::Exclusive);
  ASSERT_TRUE(refused.ok() && *refused);
  EXPECT_EQ((*refused)->range.first, 100u);
  EXPECT_EQ((*refused)->range.last, 149u);
  EXPECT_FALSE((*refused)->exclusive);
  EXPECT_FALSE(server_->conflict({150, 160}, LockMode::Exclusive));
  EXPECT_TRUE(server_->conflict({149, 160}, LockMode::Exclusive));
  ASSERT_TRUE(program_locks(F_UNLCK, 0, 0));
  EXPECT_TRUE(server_locks(LockMode::Exclusive, {0, ~std::uint64_t{0}}));
}

TEST_F(PosixLocalLocks, reach_beyond_what_programs_can_name) {
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 63;
  EXPECT_TRUE(server_locks(LockMode::Exclusive, {kBeyond, ~std::uint64_t{0}}));
  EXPECT_FALSE(server_->conflict({kBeyond, kBeyond}, LockMode::Exclusive));
  EXPECT_TRUE(server_locks(LockMode::Exclusive, {0, kBeyond + 5}));
  EXPECT_FALSE(program_locks(F_RDLCK, 1, 1));
}

TEST_F(PosixLocalLocks, stand_beside_a_lease_for_writing) {
  server_.reset();
  ::close(program_);
  auto lease = finish(loop_, fs().lease(caller(), file_, LeaseKind::Write, [](Duration) {}));
  if (!lease) GTEST_SKIP() << "no leases here";
  server_ = *finish(loop_, fs().local_locks(caller(), file_));
  ASSERT_TRUE(server_locks(LockMode::Exclusive, {0, 9}));
  EXPECT_EQ((*lease)->wanted(), std::nullopt);
  lease->reset();
  program_ = ::open((backend_.export_path() / "file").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_FALSE(program_locks(F_RDLCK, 0, 1)) << "the lock outlives it";
  server_.reset();
  EXPECT_TRUE(program_locks(F_RDLCK, 0, 1));
}

TEST_F(PosixLocalLocks, let_a_lease_for_writing_come_later_that_programs_who_open_the_file_break) {
  ::close(program_);
  program_ = -1;
  ASSERT_TRUE(server_locks(LockMode::Exclusive, {0, 9}));
  std::promise<void> wanted;
  auto lease = finish(loop_, fs().lease(caller(), file_, LeaseKind::Write,
                                        [&wanted](Duration) { wanted.set_value(); }));
  if (!lease && lease.error() == Status::Access) GTEST_SKIP() << "no leases here";
  ASSERT_TRUE(lease.ok()) << "nobody else has it open";
  const std::string path = backend_.export_path() / "file";
  EXPECT_LT(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK), 0);
  EXPECT_EQ(errno, EWOULDBLOCK);
  wanted.get_future().wait();
  ASSERT_TRUE(server_locks(LockMode::None, {0, 9}));
  lease->reset();
  program_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_TRUE(program_locks(F_WRLCK, 0, 10));
}

TEST_F(PosixLocalLocks, are_of_regular_files_only) {
  const Handle directory = fs().root();
  EXPECT_EQ(finish(loop_, fs().local_locks(caller(), directory)).error(), Status::IsDirectory);
}

}  // namespace
}  // namespace stag::vfs
