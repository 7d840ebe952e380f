// What a LocalEndpoint does with a file of which another program has a lease (fcntl(2)).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <string>
#include <utility>

#include "base/cancel.h"
#include "base/unique_fd.h"
#include "cli/copy/copier.h"
#include "cli/copy/fake_endpoint_test.h"

namespace stag::cli {
namespace {

using ::testing::HasSubstr;

class LocalLeaseTest : public LocalCopyTest {
 protected:
  void SetUp() override {
    LocalCopyTest::SetUp();
    struct sigaction action {};
    action.sa_handler = [](int) {
      if (gives_back_) ::fcntl(leased_, F_SETLEASE, F_UNLCK);
    };
    action.sa_flags = SA_RESTART;
    ASSERT_EQ(::sigaction(SIGIO, &action, &before_), 0);
  }
  void TearDown() override {
    file_ = UniqueFd();
    ::sigaction(SIGIO, &before_, nullptr);
    LocalCopyTest::TearDown();
  }

  // False: the file system here has none.
  bool lease(const std::string& path, int type, bool gives_back = true) {
    const int flags = type == F_WRLCK ? O_RDWR : O_RDONLY;
    file_ = UniqueFd(::open(at(path).c_str(), flags | O_CLOEXEC));
    leased_ = file_.fd();
    gives_back_ = gives_back;
    return ::fcntl(leased_, F_SETLEASE, type) == 0;
  }
  CopyObject found(const std::string& path) { return **run(local_->find(at(path), Follow::Yes)); }

 private:
  static inline volatile int leased_ = -1;
  static inline volatile bool gives_back_ = true;
  struct sigaction before_ {};
  UniqueFd file_;
};

TEST_F(LocalLeaseTest, reads_a_file_when_its_lease_is_given_back) {
  write("src/f", "content");
  FakeEndpoint to(FakeFiles{{"top", {}}});
  if (!lease("src/f", F_WRLCK)) GTEST_SKIP();
  EXPECT_TRUE(copy_from(to, {.recursive = true, .directories = true}));
  EXPECT_EQ(to.files()["top/f"], "content");
  ASSERT_TRUE(lease("src/f", F_WRLCK));
  EXPECT_TRUE(run(local_->check_readable(found("src/f"))));
  ASSERT_TRUE(lease("src/f", F_WRLCK));
  EXPECT_TRUE(run(local_->adopt(found("src/f"), {})));
}

TEST_F(LocalLeaseTest, writes_in_place_when_the_lease_is_given_back) {
  write("dst/f", "old");
  FakeEndpoint from(FakeFiles{{"top", {}}, {"top/f", "new"}});
  if (!lease("dst/f", F_RDLCK)) GTEST_SKIP();
  EXPECT_TRUE(copy_to(from, {.recursive = true, .directories = true, .in_place = true}, ""));
  EXPECT_EQ(read("dst/f"), "new");
}

TEST_F(LocalLeaseTest, waits_for_no_lease_where_it_need_not_read) {
  write("f", "content");
  if (!lease("f", F_WRLCK, false)) GTEST_SKIP();
  EXPECT_TRUE(run(local_->extras(found("f"), {.xattrs = true, .acls = true})));
  EXPECT_TRUE(run(local_->finish(found("f"), {.mode = 0600})));
  EXPECT_EQ(found("f").mode, 0600U);
}

TEST_F(LocalLeaseTest, waits_for_a_lease_until_it_is_interrupted) {
  write("f", "content");
  CancelSource interruption;
  cli::Run run_until{loop_, interruption};
  local_ = local_endpoint(run_until, progress_);
  if (!lease("f", F_WRLCK, false)) GTEST_SKIP();
  interruption.cancel();
  const auto read = run(local_->check_readable(found("f")));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().sentence, HasSubstr("another program has a lease of it"));
}

}  // namespace
}  // namespace stag::cli
