#include "fabric/sim/sim_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/completion.h"

namespace stag::fabric {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SimLoop, runs_posted_functions_in_order_and_never_inside_post) {
  SimLoop loop;
  std::string log;
  loop.post([&] {
    log += 'a';
    loop.post([&] { log += 'c'; });
    log += 'A';
  });
  loop.post([&] { log += 'b'; });
  EXPECT_EQ(log, "");
  loop.run_until_idle();
  EXPECT_EQ(log, "aAbc");
}

TEST(SimLoop, fires_timers_by_time_and_then_by_insertion_and_time_jumps) {
  SimLoop loop;
  std::string log;
  const TimePoint start = loop.now();
  const Timer late = loop.after(seconds(3600), [&] { log += 'z'; });
  const Timer first = loop.after(milliseconds(5), [&] { log += 'a'; });
  const Timer second = loop.after(milliseconds(5), [&] { log += 'b'; });
  loop.run_until_idle();
  EXPECT_EQ(log, "abz");
  EXPECT_EQ(loop.now() - start, seconds(3600));
}

TEST(SimLoop, a_cancelled_or_destroyed_timer_never_fires) {
  SimLoop loop;
  bool fired = false;
  Timer cancelled = loop.after(milliseconds(1), [&] { fired = true; });
  cancelled.cancel();
  {
    const Timer destroyed = loop.after(milliseconds(1), [&] { fired = true; });
  }
  // One timer of an instant cancels the other.
  Timer victim;
  const Timer killer = loop.after(milliseconds(2), [&] { victim.cancel(); });
  victim = loop.after(milliseconds(2), [&] { fired = true; });
  loop.run_until_idle();
  EXPECT_FALSE(fired);
  EXPECT_EQ(loop.pending(), 0u);
}

TEST(SimLoop, run_for_runs_what_is_due_and_leaves_time_at_the_end) {
  SimLoop loop;
  int fired = 0;
  const TimePoint start = loop.now();
  const Timer due = loop.after(milliseconds(10), [&] { ++fired; });
  const Timer later = loop.after(milliseconds(11), [&] { ++fired; });
  loop.run_for(milliseconds(10));
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(loop.now() - start, milliseconds(10));
}

TEST(SimLoop, run_until_says_false_when_nothing_is_left_or_time_is_over) {
  SimLoop loop;
  int ticks = 0;
  Timer tick;
  UniqueFunction<void()> again = [&] {
    ++ticks;
    tick = loop.after(seconds(1), [&] { again(); });
  };
  EXPECT_FALSE(loop.run_until([] { return false; }));
  again();
  EXPECT_TRUE(loop.run_until([&] { return ticks == 10; }));
  EXPECT_FALSE(loop.run_until([] { return false; }, seconds(5)));
  EXPECT_EQ(ticks, 15);
}

TEST(SimLoop, offload_does_the_work_at_once_and_posts_the_rest) {
  SimLoop loop;
  std::string log;
  loop.offload([&] { log += "work "; }, [&] { log += "done"; });
  EXPECT_EQ(log, "work ");
  loop.run_until_idle();
  EXPECT_EQ(log, "work done");
}

Task<int> add_slowly(Loop& loop, int a, int b) {
  co_await sleep_for(loop, seconds(5));
  co_await resume_on(loop);
  const int sum = co_await offloaded(loop, [&] { return a + b; });
  co_return sum;
}

TEST(SimLoop, drives_a_task_to_its_end) {
  SimLoop loop;
  EXPECT_EQ(loop.run(add_slowly(loop, 2, 3)), 5);
}

std::string shuffled(std::uint64_t seed) {
  SimLoop loop(seed);
  std::string log;
  std::vector<Timer> timers;
  for (char c = 'a'; c <= 'h'; ++c)
    timers.push_back(loop.after(milliseconds(1), [&log, c] { log += c; }));
  timers.push_back(loop.after(milliseconds(2), [&log] { log += '.'; }));
  loop.run_until_idle();
  for (char c = 'A'; c <= 'H'; ++c) loop.post([&log, c] { log += c; });
  loop.run_until_idle();
  return log;
}

TEST(SimLoop, a_shuffle_seed_reorders_timers_of_one_instant_and_nothing_else) {
  EXPECT_EQ(shuffled(7), shuffled(7));
  EXPECT_NE(shuffled(7), shuffled(8));
  EXPECT_EQ(shuffled(7).substr(8), ".ABCDEFGH");
}

TEST(SimLoop, may_be_destroyed_with_functions_that_own_timers) {
  bool fired = false;
  {
    SimLoop loop;
    Timer inner = loop.after(seconds(1), [&] { fired = true; });
    loop.post([timer = std::move(inner)] {});
    Timer other = loop.after(seconds(1), [&] { fired = true; });
    Timer outer = loop.after(seconds(1), [timer = std::move(other)] {});
    loop.post([timer = std::move(outer)] {});
  }
  EXPECT_FALSE(fired);
}

}  // namespace
}  // namespace stag::fabric
