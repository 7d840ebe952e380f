#include "seeds.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "base/check.h"

namespace stag::testing {
namespace {

TEST(SeedsDeathTest, a_run_that_ends_the_process_says_how_to_run_it_again) {
  constexpr const char* kAgain = "seed [0-9]+ failed; again: .*SeedsDeathTest.* --seed [0-9]+";
  EXPECT_DEATH(for_each_seed([](std::uint64_t) { STAG_CHECK(false); }), kAgain);
  EXPECT_DEATH(for_each_seed([](std::uint64_t) {
                 volatile int* volatile nowhere = nullptr;
                 *nowhere = 1;
               }),
               kAgain);
}

TEST(SeedsDeathTest, a_number_of_seeds_is_one_above_0) {
  std::array<char, 5> name{"test"};
  char* arguments[] = {name.data()};
  for (const char* const count : {"", "0", "1k", "-1", " 1"})
    EXPECT_EXIT(
        {
          ::setenv("STAG_SIM_SEEDS", count, 1);
          choose_seeds(1, arguments);
        },
        ::testing::ExitedWithCode(2), "STAG_SIM_SEEDS is not a number above 0");
}

TEST(SeedsDeathTest, the_seed_of_a_run_is_a_number) {
  std::array<char, 5> name{"test"};
  std::array<char, 7> option{"--seed"};
  std::array<char, 2> value{"x"};
  char* arguments[] = {name.data(), option.data(), value.data()};
  EXPECT_EXIT(choose_seeds(3, arguments), ::testing::ExitedWithCode(2), "--seed");
  EXPECT_EXIT(choose_seeds(2, arguments), ::testing::ExitedWithCode(2), "--seed");
}

}  // namespace
}  // namespace stag::testing
