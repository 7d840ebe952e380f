#include "cli/support/process_of_thread.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
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

TEST(ProcessOfThread, is_not_what_a_thread_calls_itself) {
  for (const char* name : {"Tgid:\t1", "a\nTgid:\t1", "Tgid: 1"}) {
    std::thread named([name] {
      ASSERT_EQ(::prctl(PR_SET_NAME, name), 0);
      EXPECT_EQ(process_of_thread(::gettid()), ::getpid());
    });
    named.join();
  }
}

TEST(ProcessOfThread, is_not_known_of_a_thread_that_is_not_there) {
  EXPECT_EQ(process_of_thread(-1), std::nullopt);
}

}  // namespace
}  // namespace stag::cli
