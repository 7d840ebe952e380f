#include "cli/process.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

TEST(Process, gives_all_listeners_together_half_of_the_open_files) {
  EXPECT_EQ(connections_per_listener(1024, 2), 256u);
  EXPECT_EQ(connections_per_listener(1024, 8), 64u);
  EXPECT_EQ(connections_per_listener(1'048'576, 2), 262'144u);
  EXPECT_EQ(connections_per_listener(4, 8), 1u) << "a listener that takes nobody is of no use";
  EXPECT_EQ(connections_per_listener(~std::uint64_t{0}, 2), 0xffffffffu) << "no limit at all";
}

}  // namespace
}  // namespace stag::cli
