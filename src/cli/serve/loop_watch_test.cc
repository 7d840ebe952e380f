// The watchdog's rounds: reported while every loop turns, and not any more when one hangs.
#include "cli/serve/loop_watch.h"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <thread>

#include "endpoint/loops.h"
#include "testing/manual_loop.h"

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

class LoopWatchTest : public ::testing::Test {
 protected:
  LoopWatchTest() {
    endpoint::run_on(home(), [this] {
      watch_ = std::make_unique<LoopWatch>(home(), std::vector<Loop*>{&loops_.at(1), &loops_.at(2)},
                                           1ms, [this] { report(); });
    });
  }
  ~LoopWatchTest() override {
    endpoint::run_on(home(), [this] { watch_ = nullptr; });
  }
  Loop& home() { return loops_.at(0); }
  void report() {
    ++reports_;
    if (reports_ == wanted_) arrived_.set_value();
  }
  // Blocks until so many more reports came.
  void await(int more) {
    std::promise<void> fresh;
    endpoint::run_on(home(), [&] {
      arrived_ = std::move(fresh);
      wanted_ = reports_ + more;
    });
    arrived_.get_future().wait();
  }
  int reports() {
    return endpoint::run_on(home(), [this] { return reports_; });
  }

  endpoint::Loops loops_{3};
  std::unique_ptr<LoopWatch> watch_;
  int reports_ = 0;
  int wanted_ = -1;
  std::promise<void> arrived_;
};

TEST_F(LoopWatchTest, reports_again_and_again_while_every_loop_turns) {
  await(5);
}

TEST_F(LoopWatchTest, reports_nothing_while_a_loop_hangs_and_goes_on_when_it_turns_again) {
  await(1);
  std::promise<void> hangs, free;
  loops_.at(2).post([&] {
    hangs.set_value();
    free.get_future().wait();
  });
  hangs.get_future().wait();
  // The round in progress may have had its answer; one more cannot end.
  const int before = reports();
  for (int i = 0; i < 1000; ++i) endpoint::run_on(loops_.at(1), [] {});
  EXPECT_LE(reports(), before + 1);
  free.set_value();
  await(2);
}

TEST(LoopWatch, reports_again_after_a_report_that_found_no_memory) {
  testing::ManualLoop home;
  int tries = 0;
  const LoopWatch watch(home, {&home}, 20s, [&] {
    if (++tries == 2) throw std::bad_alloc();
  });
  home.drain();
  EXPECT_THROW(home.pass(20s), std::bad_alloc);
  EXPECT_EQ(tries, 2);
  home.pass(60s);
  EXPECT_EQ(tries, 5);
}

}  // namespace
}  // namespace stag::cli
