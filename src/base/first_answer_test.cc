#include "base/first_answer.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/unique_function.h"
#include "testing/manual_loop.h"

namespace stag {
namespace {

using namespace std::chrono_literals;

class FirstAnswers : public ::testing::Test {
 protected:
  static Task<> wait(Loop& loop, UniqueFunction<void(int)>& tell, std::optional<int>& answer) {
    FirstAnswer<int> first(loop);
    tell = first.from_anywhere();
    answer = co_await first.within(10ms, -1);
  }
  void start() { detach(wait(loop_, tell_, answer_)); }

  testing::ManualLoop loop_;
  UniqueFunction<void(int)> tell_;
  std::optional<int> answer_;
};

TEST_F(FirstAnswers, come_by_the_loop_when_they_are_there) {
  start();
  loop_.pass(9ms);
  tell_(7);
  EXPECT_FALSE(answer_) << "it may have been another thread";
  loop_.drain();
  EXPECT_EQ(answer_, 7);
  loop_.pass(10ms);
  EXPECT_EQ(answer_, 7);
}

TEST_F(FirstAnswers, are_replaced_when_they_are_late) {
  start();
  loop_.pass(10ms);
  EXPECT_EQ(answer_, -1);
  tell_(7);
  loop_.drain();
  EXPECT_EQ(answer_, -1);
}

TEST_F(FirstAnswers, are_the_first_of_two) {
  start();
  tell_(7);
  tell_(8);
  loop_.drain();
  EXPECT_EQ(answer_, 7);
}

}  // namespace
}  // namespace stag
