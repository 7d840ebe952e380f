#include "cli/serve/process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

namespace stag::cli {
namespace {

TEST(Process, leaves_open_files_for_everything_but_connections) {
  const auto within = [](std::uint64_t open_files, std::size_t addresses, std::uint32_t rdma,
                         std::uint32_t tcp) {
    const ConnectionLimits limits = connections_within(open_files, addresses, {rdma, tcp});
    return std::pair(limits.rdma, limits.tcp);
  };
  EXPECT_EQ(within(1024, 1, 16384, 4096), std::pair(384u, 128u));
  EXPECT_EQ(within(1024, 4, 16384, 4096), std::pair(96u, 32u));
  EXPECT_EQ(within(1024, 1, 10, 4096), std::pair(10u, 502u)) << "what RDMA does not want is TCP's";
  EXPECT_EQ(within(20'000, 1, 10'100, 10'100), std::pair(10'100u, 5'804u));
  EXPECT_EQ(within(1'048'576, 2, 16384, 4096), std::pair(16384u, 4096u)) << "enough for all";
  EXPECT_EQ(within(~std::uint64_t{0}, 1, 16384, 4096), std::pair(16384u, 4096u)) << "no limit";
  EXPECT_EQ(within(4, 8, 2, 2), std::pair(1u, 1u)) << "a listener that takes nobody is of no use";
}

mode_t mode_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777u;
}

TEST(StateLock, makes_a_directory_that_is_its_users_alone_and_leaves_one_that_is_there) {
  const std::string folder = ::testing::TempDir() + "stag_process_" + std::to_string(::getpid());
  const mode_t before = ::umask(0);
  EXPECT_TRUE(StateLock::take(folder + "/above/state/."));
  EXPECT_EQ(mode_of(folder + "/above/state"), 0700u);
  EXPECT_EQ(mode_of(folder + "/above"), 0755u) << "nobody else may put another one there";
  EXPECT_EQ(::chmod((folder + "/above/state").c_str(), 0711), 0);
  EXPECT_TRUE(StateLock::take(folder + "/above/state"));
  EXPECT_EQ(mode_of(folder + "/above/state"), 0711u) << "for a --control-group";
  const auto file = StateLock::take(folder + "/above/state/lock");
  EXPECT_FALSE(file) << "a file is in the way";
  ::umask(before);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stag::cli
