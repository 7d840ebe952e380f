#include "cli/support/process_of_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace stag::cli {
namespace {

TEST(ProcessOfThread, is_the_one_that_all_its_threads_are_of) {
  EXPECT_EQ(process_of_thread(::getpid()), ::getpid());
  std::thread other([] {
    EXPECT_NE(::gettid(), ::getpid());
    EXPECT_EQ(process_of_thread(::gettid()), ::getpid());
  });
  other.join();
}

TEST(ProcessOfThread, is_not_known_of_a_thread_that_is_not_there) {
  EXPECT_EQ(process_of_thread(-1), std::nullopt);
}

}  // namespace
}  // namespace stag::cli
