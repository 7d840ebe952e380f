#include "cli/serve/process.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stag::cli
