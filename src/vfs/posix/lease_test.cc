// Leases: local programs wait for the server, which hears of them.
#include <fcntl.h>
#include <sys/resource.h>

#include <cstring>
#include <future>
#include <thread>

#include "testing/vfs/posix_backend.h"

namespace stag::vfs {
namespace {

using testing::finish;
using testing::kDisk;
using testing::kMemory;

// On a disk and in memory, where the server reads and writes in different ways.
class PosixLease : public ::testing::TestWithParam<const char*> {
 protected:
  PosixLease() : backend(testing::PosixKind{GetParam()}) {
    file = good(fs().create(caller(), fs().root(), "file", {})).node.handle;
  }
  void SetUp() override {
    const auto asked = quiet_lease(LeaseKind::Read);
    if (!asked && asked.error() == Status::Access) GTEST_SKIP() << "no leases here";
  }
  FileSystem& fs() { return backend.fs(); }
  CallerContext caller() { return {loop, root}; }
  template <class T>
  T good(Operation<T> operation) {
    Outcome<T> result = finish(loop, std::move(operation));
    if (!result) ADD_FAILURE() << to_string(result.error());
    STAG_CHECK(result.ok());
    return *std::move(result);
  }
  Outcome<std::shared_ptr<Lease>> lease(LeaseKind kind) {
    return finish(loop, fs().lease(caller(), file, kind, [this](Duration waits) {
      EXPECT_GT(waits, Duration::zero());
      wanted.set_value();
    }));
  }
  // One that nobody wants while the test runs, or whose wanted() is looked at.
  Outcome<std::shared_ptr<Lease>> quiet_lease(LeaseKind kind) {
    return finish(loop, fs().lease(caller(), file, kind, [](Duration) {}));
  }
  void write(std::string_view text) {
    const auto written = good(
        fs().write(caller(), file, 0, Rope(Buffer::copy_of(bytes_of(text))), Stability::FileSync));
    EXPECT_EQ(written.count, text.size());
  }
  std::string path() const { return backend.export_path() / "file"; }
  // What a program that does not want to wait is told: 0 or errno.
  int open_status(int flags) const {
    const int opened = ::open(path().c_str(), flags | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0) return errno;
    ::close(opened);
    return 0;
  }

  testing::InlineLoop loop;
  const Credentials root{0, 0, {}};
  testing::PosixBackend backend;
  Handle file;
  std::promise<void> wanted;
};

class NoQueuedSignals {
 public:
  NoQueuedSignals() {
    STAG_CHECK(::getrlimit(RLIMIT_SIGPENDING, &before_) == 0);
    rlimit none = before_;
    none.rlim_cur = 0;
    STAG_CHECK(::setrlimit(RLIMIT_SIGPENDING, &none) == 0);
  }
  NoQueuedSignals(const NoQueuedSignals&) = delete;
  ~NoQueuedSignals() { ::setrlimit(RLIMIT_SIGPENDING, &before_); }

 private:
  rlimit before_{};
};

INSTANTIATE_TEST_SUITE_P(Stores, PosixLease, ::testing::Values(kDisk, kMemory),
                         [](const auto& under) {
                           return std::string(under.param == kDisk ? "disk" : "memory");
                         });

TEST_P(PosixLease, keeps_local_writers_waiting_and_hears_of_them_if_it_is_for_reading) {
  auto held = lease(LeaseKind::Read);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(open_status(O_RDONLY), 0) << "readers share";
  EXPECT_EQ((*held)->wanted(), std::nullopt);
  EXPECT_EQ(open_status(O_RDWR), EWOULDBLOCK);
  wanted.get_future().get();
  EXPECT_TRUE((*held)->wanted().has_value());
  EXPECT_EQ(open_status(O_RDWR), EWOULDBLOCK) << "until it is given back";
  held->reset();
  EXPECT_EQ(open_status(O_RDWR), 0);
}

TEST_P(PosixLease, tells_again_who_had_no_memory_to_hear_of_it) {
  bool failed = false;
  auto held = finish(loop, fs().lease(caller(), file, LeaseKind::Read, [&](Duration) {
    if (!std::exchange(failed, true)) throw std::bad_alloc();
    wanted.set_value();
  }));
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(open_status(O_RDWR), EWOULDBLOCK);
  wanted.get_future().get();
  EXPECT_TRUE(failed);
}

// Any process of the user fills it.
TEST_P(PosixLease, is_wanted_and_ends_while_the_queue_of_signals_is_full) {
  auto held = lease(LeaseKind::Read);
  ASSERT_TRUE(held.ok());
  {
    const NoQueuedSignals full;
    EXPECT_EQ(open_status(O_RDWR), EWOULDBLOCK);
    wanted.get_future().get();
    held->reset();
  }
  EXPECT_TRUE(quiet_lease(LeaseKind::Read).ok());
}

TEST_P(PosixLease, hears_of_local_readers_if_it_is_for_writing) {
  auto held = lease(LeaseKind::Write);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(open_status(O_RDONLY), EWOULDBLOCK);
  wanted.get_future().get();
  held->reset();
  EXPECT_EQ(open_status(O_RDONLY), 0);
}

TEST_P(PosixLease, has_a_local_reader_wait_and_see_what_was_written_meanwhile) {
  auto held = lease(LeaseKind::Write);
  ASSERT_TRUE(held.ok());
  std::string seen;
  std::thread program([&] {
    const int opened = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
    char text[16] = {};
    EXPECT_GE(::read(opened, text, sizeof text), 0);
    seen = text;
    ::close(opened);
  });
  wanted.get_future().get();
  write("in time");
  held->reset();
  program.join();
  EXPECT_EQ(seen, "in time");
}

TEST_P(PosixLease, hears_of_a_local_truncation) {
  auto held = lease(LeaseKind::Read);
  ASSERT_TRUE(held.ok());
  std::thread program([&] { EXPECT_EQ(::truncate(path().c_str(), 0), 0); });
  wanted.get_future().get();
  held->reset();
  program.join();
}

TEST_P(PosixLease, is_not_given_while_a_local_program_has_the_file_open) {
  const int reader = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(quiet_lease(LeaseKind::Write).error(), Status::Delay);
  EXPECT_TRUE(quiet_lease(LeaseKind::Read).ok());
  ::close(reader);
  const int writer = ::open(path().c_str(), O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(quiet_lease(LeaseKind::Read).error(), Status::Delay);
  ::close(writer);
  EXPECT_TRUE(quiet_lease(LeaseKind::Write).ok());
}

TEST_P(PosixLease, is_not_ended_by_the_servers_own_use_if_it_is_for_writing) {
  write("before");
  const auto held = quiet_lease(LeaseKind::Write);
  ASSERT_TRUE(held.ok());
  write("0123456789");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(good(fs().read(caller(), file, 0, 10)).data.size(), 10u);
  good(fs().commit(caller(), file, 0, 0));
  SetAttributes changes;
  changes.size = 5;
  changes.mode = 0640;
  changes.modified.how = SetTime::How::Now;
  good(fs().set_attributes(caller(), file, changes, std::nullopt));
  write("after");
  EXPECT_EQ((*held)->wanted(), std::nullopt);
  EXPECT_EQ(open_status(O_RDONLY), EWOULDBLOCK) << "it is there";
}

TEST_P(PosixLease, stands_beside_the_servers_reads_if_it_is_for_reading) {
  write("text");
  const auto held = quiet_lease(LeaseKind::Read);
  ASSERT_TRUE(held.ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(good(fs().read(caller(), file, 0, 4)).data.size(), 4u);
  EXPECT_EQ((*held)->wanted(), std::nullopt);
}

TEST_P(PosixLease, ends_when_the_server_writes_if_it_is_for_reading) {
  const auto held = lease(LeaseKind::Read);
  ASSERT_TRUE(held.ok());
  write("text");
  wanted.get_future().get();
  EXPECT_TRUE((*held)->wanted().has_value());
  EXPECT_EQ(quiet_lease(LeaseKind::Read).error(), Status::Delay);
}

TEST_P(PosixLease, is_shared_if_it_is_for_reading) {
  auto first = quiet_lease(LeaseKind::Read);
  auto second = lease(LeaseKind::Read);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(quiet_lease(LeaseKind::Write).error(), Status::Delay);
  first->reset();
  EXPECT_EQ(open_status(O_WRONLY), EWOULDBLOCK);
  wanted.get_future().get();
  second->reset();
  EXPECT_EQ(open_status(O_WRONLY), 0);
}

TEST_P(PosixLease, leaves_nothing_open_for_writing) {
  auto held = quiet_lease(LeaseKind::Write);
  ASSERT_TRUE(held.ok());
  write("#!/bin/true\n");
  good(fs().commit(caller(), file, 0, 0));
  held->reset();
  EXPECT_TRUE(quiet_lease(LeaseKind::Read).ok()) << "the kernel finds no writer";
}

TEST_P(PosixLease, is_of_regular_files_only) {
  const auto asked =
      finish(loop, fs().lease(caller(), fs().root(), LeaseKind::Read, [](Duration) {}));
  EXPECT_EQ(asked.error(), Status::IsDirectory);
}

TEST(PosixLeaseOption, says_that_the_store_does_not_look) {
  testing::Folder folder(kDisk);
  PosixFileSystem::Options options;
  options.root = folder.path();
  options.sees_local_programs = false;
  const auto store = PosixFileSystem::open(options);
  ASSERT_TRUE(store.ok());
  testing::InlineLoop loop;
  const Credentials root{0, 0, {}};
  const Handle handle = (*store)->root();
  const auto asked =
      finish(loop, (*store)->lease({loop, root}, handle, LeaseKind::Read, [](Duration) {}));
  EXPECT_EQ(asked.error(), Status::NotSupported);
}

}  // namespace
}  // namespace stag::vfs
