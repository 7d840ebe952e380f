// The end of a server that takes too long.
#include "cli/serve/departure.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <future>
#include <new>

#include "cli/support/command.h"

namespace stag::cli {
namespace {

// Stays until the time is over.
void outstay(std::function<void()> complain) {
  Departure departure(std::move(complain), [] { std::fputs("the last", stderr); });
  departure.begin(Duration::zero());
  std::promise<void>().get_future().wait();
}

class DepartureDeathTest : public ::testing::Test {
 protected:
  DepartureDeathTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  static auto failed() { return ::testing::ExitedWithCode(static_cast<int>(Exit::Failed)); }
};

TEST_F(DepartureDeathTest, ends_the_process_when_the_time_is_over) {
  EXPECT_EXIT(outstay([] { std::fputs("late, ", stderr); }), failed(), "late, the last");
}

TEST_F(DepartureDeathTest, ends_it_in_the_same_way_where_there_is_no_memory_to_complain) {
  EXPECT_EXIT(outstay([] { throw std::bad_alloc(); }), failed(), "the last");
}

}  // namespace
}  // namespace stag::cli
