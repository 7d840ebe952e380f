// What wait_on() and its like do where there is no memory for the Task.
#include <gtest/gtest.h>

#include "endpoint/loops.h"
#include "testing/failing_new.h"

namespace stag::endpoint {
namespace {

Task<int> answer() {
  co_return 42;
}
Task<int> throwing() {
  throw std::runtime_error("no answer");
  co_return 0;
}

TEST(WaitOn, throws_where_there_is_no_memory_to_begin_the_Task) {
  Loops loops;
  for (std::size_t failing = 1; failing <= 2; ++failing) {
    EXPECT_THROW(wait_on(loops.at(0),
                         [failing] {
                           testing::allocations_until_failure = failing;
                           return answer();
                         }),
                 std::bad_alloc);
  }
  EXPECT_EQ(wait_on(loops.at(0), answer), 42);
}

TEST(WaitOn, throws_what_the_Task_throws) {
  Loops loops;
  EXPECT_THROW(wait_on(loops.at(0), throwing), std::runtime_error);
}

TEST(FinishOn, begins_again_until_there_is_memory) {
  Loops loops;
  int begun = 0;
  bool ended = false;
  finish_on(loops.at(0), [&] {
    if (++begun < 3) throw std::bad_alloc();
    const auto end = [](bool& flag) -> Task<int> {
      flag = true;
      co_return 0;
    };
    return end(ended);
  });
  EXPECT_EQ(begun, 3);
  EXPECT_TRUE(ended);
}

TEST(FinishOn, runs_a_function_that_returns_nothing_when_there_is_memory) {
  Loops loops;
  int runs = 0;
  testing::allocations_until_failure = 1;
  finish_on(loops.at(0), [&] { ++runs; });
  EXPECT_EQ(testing::allocations_until_failure, 0u);
  EXPECT_EQ(runs, 1);
}

TEST(RunOn, throws_what_the_function_throws) {
  Loops loops;
  EXPECT_THROW(run_on(loops.at(0), [] { throw std::runtime_error("nothing"); }),
               std::runtime_error);
  EXPECT_EQ(run_on(loops.at(0), [] { return 1; }), 1);
}

}  // namespace
}  // namespace stag::endpoint
