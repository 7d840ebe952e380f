#include "rpc/reconnector.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "testing/manual_loop.h"

namespace stag::rpc {
namespace {

using namespace std::chrono_literals;

// Attempts fail as long as the test says so.
class ReconnectorTest : public ::testing::Test, private Reconnector::Owner {
 protected:
  ~ReconnectorTest() override { loop.pass(1h); }

  // Milliseconds between the attempts so far.
  std::vector<std::int64_t> waits() const {
    std::vector<std::int64_t> between;
    for (std::size_t i = 1; i < attempts.size(); ++i)
      between.push_back(
          std::chrono::duration_cast<std::chrono::milliseconds>(attempts[i] - attempts[i - 1])
              .count());
    return between;
  }

  testing::ManualLoop loop;
  bool wanted = true, throws = false;
  int failures = 0;  // attempts to fail
  std::vector<TimePoint> attempts;
  std::vector<Reason> ended;
  Reconnector reconnector{loop, *this, {.first = 100ms, .longest = 1s, .give_up_after = 20s}, 7};

 private:
  Task<Result<Ok, Reason>> attempt(CancelToken) override {
    attempts.push_back(loop.now());
    if (throws) throw std::bad_alloc();
    if (failures-- > 0) co_return Failure{Reason::ConnectionRefused};
    co_return Ok{};
  }
  bool wants_connection() const override { return wanted; }
  void on_attempt_failed(Reason reason) override { EXPECT_EQ(reason, Reason::ConnectionRefused); }
  void on_attempts_ended(Reason reason) override { ended.push_back(reason); }
};

TEST_F(ReconnectorTest, waits_twice_as_long_after_each_failure_up_to_a_limit_and_by_chance_less) {
  failures = 8;
  reconnector.start();
  EXPECT_EQ(attempts.size(), 1u) << "the first at once";
  loop.pass(20s);
  ASSERT_EQ(ended, std::vector{Reason::None});
  const std::vector<std::int64_t> longest{100, 200, 400, 800, 1000, 1000, 1000, 1000};
  const std::vector<std::int64_t> waited = waits();
  ASSERT_EQ(waited.size(), longest.size());
  bool shortened = false;
  for (std::size_t i = 0; i < waited.size(); ++i) {
    EXPECT_LE(waited[i], longest[i]);
    EXPECT_GE(waited[i], longest[i] / 2);
    shortened |= waited[i] < longest[i];
  }
  EXPECT_TRUE(shortened);
}

TEST_F(ReconnectorTest, waits_before_it_replaces_a_connection_that_never_worked) {
  reconnector.start();
  loop.pass(20ms);
  reconnector.start();
  EXPECT_EQ(attempts.size(), 1u);
  loop.pass(1s);
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_GE(waits().front(), 50);
  EXPECT_LE(waits().front(), 100) << "from the attempt before, not from the loss";
  reconnector.worked();
  reconnector.start();
  EXPECT_EQ(attempts.size(), 3u) << "at once";
}

// Else a call with a shorter time limit than the pause would never see a server that is back.
TEST_F(ReconnectorTest, does_not_wait_once_more_for_whoever_comes_behind_the_pause) {
  failures = 1000;
  reconnector.start();
  loop.pass(5s);
  wanted = false;
  loop.pass(2s);
  EXPECT_EQ(ended, std::vector{Reason::None});
  const std::size_t before = attempts.size();
  wanted = true;
  failures = 0;
  reconnector.start();
  EXPECT_EQ(attempts.size(), before + 1) << "at once";
}

TEST_F(ReconnectorTest, does_not_try_at_once_behind_an_attempt_that_there_was_no_memory_for) {
  throws = true;
  for (int i = 0; i < 3; ++i) {
    reconnector.start();
    loop.pass(40ms);
  }
  EXPECT_EQ(attempts.size(), 2u);
}

TEST_F(ReconnectorTest, gives_up_in_the_end_and_says_why) {
  failures = 1000;
  reconnector.start();
  loop.pass(1min);
  EXPECT_EQ(ended, std::vector{Reason::ConnectionRefused});
  EXPECT_FALSE(reconnector.connecting());
}

TEST_F(ReconnectorTest, ends_when_nobody_wants_a_connection_any_more) {
  failures = 1000;
  reconnector.start();
  wanted = false;
  loop.pass(1min);
  EXPECT_EQ(attempts.size(), 1u);
  EXPECT_EQ(ended, std::vector{Reason::None});
}

TEST_F(ReconnectorTest, stops_at_once_in_the_middle_of_a_pause_and_for_good) {
  failures = 1000;
  reconnector.start();
  reconnector.stop();
  EXPECT_EQ(ended, std::vector{Reason::Shutdown});
  reconnector.start();
  loop.pass(1min);
  EXPECT_EQ(attempts.size(), 1u);
}

TEST_F(ReconnectorTest, is_one_at_a_time_however_many_ask) {
  failures = 1;
  reconnector.start();
  reconnector.start();
  loop.pass(10s);
  EXPECT_EQ(attempts.size(), 2u);
}

TEST_F(ReconnectorTest, can_begin_again_when_there_was_no_memory_for_an_attempt) {
  throws = true;
  reconnector.start();
  EXPECT_EQ(ended, std::vector{Reason::OutOfMemory}) << "and who waits is told";
  throws = false;
  reconnector.start();
  loop.pass(10s);
  EXPECT_EQ(ended.back(), Reason::None);
}

}  // namespace
}  // namespace stag::rpc
