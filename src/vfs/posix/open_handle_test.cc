#include "vfs/posix/open_handle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace stag::vfs::posix {
namespace {

// Fails with `errors` one after the other, then with the last of them for ever.
struct Failing {
  std::vector<int> errors;
  std::size_t calls = 0;
  int operator()() {
    errno = errors[std::min(calls++, errors.size() - 1)];
    return -1;
  }
};

TEST(OpenHandle, asks_again_while_an_inode_number_is_being_used_again) {
  Failing failing{{ENOMEM, ENOMEM, ESTALE}};
  EXPECT_EQ(open_handle(std::ref(failing)), -1);
  EXPECT_EQ(errno, ESTALE);
  EXPECT_EQ(failing.calls, 3u);
}

TEST(OpenHandle, believes_in_the_end_that_memory_is_short) {
  Failing failing{{ENOMEM}};
  EXPECT_EQ(open_handle(std::ref(failing)), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_LE(failing.calls, 100u);
}

TEST(OpenHandle, asks_once_where_there_is_an_answer) {
  Failing failing{{EMFILE}};
  EXPECT_EQ(open_handle(std::ref(failing)), -1);
  EXPECT_EQ(failing.calls, 1u);
  EXPECT_EQ(open_handle([] { return 7; }), 7);
}

}  // namespace
}  // namespace stag::vfs::posix
