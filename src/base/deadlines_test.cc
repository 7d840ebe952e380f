#include "base/deadlines.h"

#include <gtest/gtest.h>

#include <new>

#include "testing/manual_loop.h"

namespace stag {
namespace {

using namespace std::chrono_literals;

// Has no memory for a timer when the test says so.
class ShortLoop final : public Loop {
 public:
  TimePoint now() const override { return time.now(); }
  void post(Function function) override { time.post(std::move(function)); }
  [[nodiscard]] Timer after(Duration delay, Function function) override {
    if (is_short) throw std::bad_alloc();
    return time.after(delay, std::move(function));
  }
  void offload(Function work, Function done) override {
    time.offload(std::move(work), std::move(done));
  }
  bool on_thread() const override { return true; }

  testing::ManualLoop time;
  bool is_short = false;

 private:
  void cancel_timer(std::uint64_t) override { STAG_CHECK(false); }  // they are the other loop's
};

struct Noted final : Deadline {
  void on_deadline() override { passed = true; }
  bool passed = false;
};

class DeadlinesTest : public ::testing::Test {
 protected:
  void add(Noted& deadline, Duration in) { deadlines.add(deadline, loop.now() + in); }
  void fail_to_add(Noted& deadline, Duration in) {
    loop.is_short = true;
    EXPECT_THROW(add(deadline, in), std::bad_alloc);
    loop.is_short = false;
    deadline.leave();
  }

  ShortLoop loop;
  Deadlines deadlines{loop};
  Noted first, second, third;
};

TEST_F(DeadlinesTest, pass_in_their_order_whichever_was_added_first) {
  add(second, 20ms);
  add(first, 10ms);
  add(third, 30ms);
  second.leave();
  loop.time.pass(10ms);
  EXPECT_TRUE(first.passed);
  EXPECT_FALSE(third.passed);
  loop.time.pass(20ms);
  EXPECT_TRUE(third.passed);
  EXPECT_FALSE(second.passed);
}

TEST_F(DeadlinesTest, pass_although_there_was_no_memory_for_the_timer_of_one_before) {
  fail_to_add(first, 10ms);
  add(second, 20ms);
  loop.time.pass(20ms);
  EXPECT_FALSE(first.passed);
  EXPECT_TRUE(second.passed);
}

TEST_F(DeadlinesTest, keep_their_timer_where_there_is_no_memory_for_an_earlier_one) {
  add(first, 30ms);
  fail_to_add(second, 10ms);
  add(third, 20ms);
  loop.time.pass(20ms);
  EXPECT_TRUE(third.passed);
  loop.time.pass(10ms);
  EXPECT_TRUE(first.passed);
}

}  // namespace
}  // namespace stag
