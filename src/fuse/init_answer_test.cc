#include "fuse/init_answer.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <span>

namespace stag::fuse {
namespace {

std::uint32_t flags_allowed(std::uint32_t agreed, std::size_t size) {
  fuse_init_out answer{};
  answer.flags = agreed;
  allow_parallel_directories(std::as_writable_bytes(std::span(&answer, 1)).first(size));
  return answer.flags;
}

TEST(InitAnswer, lets_the_kernel_work_in_one_directory_side_by_side_beside_what_else_was_agreed) {
  EXPECT_EQ(flags_allowed(FUSE_ASYNC_READ, sizeof(fuse_init_out)),
            std::uint32_t{FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS});
  EXPECT_EQ(flags_allowed(0, FUSE_COMPAT_22_INIT_OUT_SIZE), std::uint32_t{FUSE_PARALLEL_DIROPS});
}

TEST(InitAnswer, stays_as_it_is_without_flags) {
  EXPECT_EQ(flags_allowed(0, FUSE_COMPAT_INIT_OUT_SIZE), 0u);
}

}  // namespace
}  // namespace stag::fuse
