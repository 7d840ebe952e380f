#include "cli/serve/reloads.h"

#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <utility>

namespace stag::cli {
namespace {

// Offloaded work waits until the test lets it begin.
class LoopWithHeldWork final : public Loop {
 public:
  TimePoint now() const override { return {}; }
  void post(Function function) override { function(); }
  Timer after(Duration, Function function) override {
    timer = std::move(function);
    return {};
  }
  void offload(Function work, Function done) override {
    if (std::exchange(without_memory, false)) throw std::bad_alloc();
    held.push_back([work = std::move(work), done = std::move(done)]() mutable { work(), done(); });
  }
  bool on_thread() const override { return true; }
  void run_one() {
    Function next = std::move(held.front());
    held.pop_front();
    next();
  }
  std::deque<Function> held;
  bool without_memory = false;  // for the next one
  Function timer;

 private:
  void cancel_timer(std::uint64_t) override {}
};

struct Reloading {
  int reloaded = 0;
  int done = 0;
  int ended = 0;
  int looked = 0;
  LoopWithHeldWork loop;
  Reloads reloads{loop, {.reload = [this] { ++reloaded; }, .done = [this] { ++done; }}};
  void look() {
    reloads.look([this] { ++looked; });
  }
};

TEST(Reloads, run_once_more_when_asked_for_during_a_reload) {
  Reloading is;
  for (int i = 0; i < 3; ++i) is.reloads.ask();
  EXPECT_EQ(is.loop.held.size(), 1u) << "one at a time";
  is.loop.run_one();
  EXPECT_EQ(is.done, 1);
  ASSERT_EQ(is.loop.held.size(), 1u);
  is.loop.run_one();
  EXPECT_EQ(is.done, 2);
  EXPECT_TRUE(is.loop.held.empty());
  is.reloads.ask();
  EXPECT_EQ(is.loop.held.size(), 1u);
  EXPECT_EQ(is.reloaded, 2);
}

TEST(Reloads, run_a_little_later_where_there_was_no_memory_for_it) {
  Reloading is;
  is.loop.without_memory = true;
  EXPECT_THROW(is.reloads.ask(), std::bad_alloc);
  EXPECT_TRUE(is.reloads.idle());
  is.loop.without_memory = true;
  EXPECT_THROW(is.look(), std::bad_alloc);
  is.loop.timer();
  ASSERT_EQ(is.loop.held.size(), 1u);
  is.loop.run_one();
  EXPECT_EQ(is.done, 1);
  is.reloads.end([&] { ++is.ended; });
  EXPECT_EQ(is.ended, 1) << "nothing is waited for";
}

TEST(Reloads, end_when_the_one_that_runs_has_ended) {
  Reloading is;
  is.reloads.ask();
  is.reloads.ask();
  is.reloads.end([&] { ++is.ended; });
  EXPECT_EQ(is.ended, 0);
  is.loop.run_one();
  EXPECT_EQ(is.ended, 1);
  EXPECT_EQ(is.reloaded, 1);
  EXPECT_EQ(is.done, 0);
  EXPECT_TRUE(is.loop.held.empty());
}

TEST(Reloads, do_not_run_beside_a_look_but_after_it) {
  Reloading is;
  EXPECT_TRUE(is.reloads.idle());
  is.look();
  EXPECT_FALSE(is.reloads.idle());
  is.reloads.ask();
  ASSERT_EQ(is.loop.held.size(), 1u);
  is.loop.run_one();
  EXPECT_EQ(is.looked, 1);
  EXPECT_EQ(is.reloaded, 0);
  ASSERT_EQ(is.loop.held.size(), 1u);
  is.loop.run_one();
  EXPECT_EQ(is.reloaded, 1);
  EXPECT_EQ(is.done, 1) << "a look is not told of";
  EXPECT_TRUE(is.reloads.idle());
}

TEST(Reloads, end_when_a_look_has_ended) {
  Reloading is;
  is.look();
  is.reloads.end([&] { ++is.ended; });
  EXPECT_EQ(is.ended, 0);
  EXPECT_FALSE(is.reloads.idle());
  is.loop.run_one();
  EXPECT_EQ(is.ended, 1);
}

TEST(Reloads, end_at_once_when_none_runs_and_then_none_begins) {
  Reloading is;
  is.reloads.end([&] { ++is.ended; });
  EXPECT_EQ(is.ended, 1);
  is.reloads.ask();
  EXPECT_TRUE(is.loop.held.empty());
}

}  // namespace
}  // namespace stag::cli
