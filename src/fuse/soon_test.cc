#include "fuse/soon.h"

#include <gtest/gtest.h>

#include <new>

#include "testing/manual_loop.h"

namespace stag::fuse {
namespace {

constexpr Duration kAfter = std::chrono::milliseconds(100);

// Has memory for no timer while `full`.
class FullLoop final : public Loop {
 public:
  TimePoint now() const override { return loop.now(); }
  void post(Function function) override { loop.post(std::move(function)); }
  [[nodiscard]] Timer after(Duration delay, Function function) override {
    if (full) throw std::bad_alloc();
    return loop.after(delay, std::move(function));
  }
  void offload(Function work, Function done) override {
    loop.offload(std::move(work), std::move(done));
  }
  bool on_thread() const override { return true; }

  testing::ManualLoop loop;
  bool full = false;

 private:
  void cancel_timer(std::uint64_t) override {}  // its Timers are those of `loop`
};

class FuseSoon : public ::testing::Test {
 protected:
  FullLoop loop;
  int runs = 0;
  bool again = false;
  Soon soon{loop, kAfter, [this] {
              ++runs;
              if (std::exchange(again, false)) soon.ask();
            }};
};

TEST_F(FuseSoon, runs_once_for_all_who_ask) {
  soon.ask();
  loop.loop.pass(kAfter / 2);
  soon.ask();
  EXPECT_EQ(runs, 0);
  loop.loop.pass(kAfter / 2);
  EXPECT_EQ(runs, 1);
  loop.loop.pass(10 * kAfter);
  EXPECT_EQ(runs, 1);
}

TEST_F(FuseSoon, runs_again_where_it_asks_for_that) {
  again = true;
  soon.ask();
  loop.loop.pass(kAfter);
  EXPECT_EQ(runs, 1);
  loop.loop.pass(kAfter);
  EXPECT_EQ(runs, 2);
}

TEST_F(FuseSoon, does_not_run_behind_its_end) {
  soon.ask();
  soon.end();
  soon.ask();
  loop.loop.pass(10 * kAfter);
  EXPECT_EQ(runs, 0);
}

TEST_F(FuseSoon, runs_for_whoever_asks_after_memory_has_run_out) {
  loop.full = true;
  EXPECT_THROW(soon.ask(), std::bad_alloc);
  loop.full = false;
  soon.ask();
  loop.loop.pass(kAfter);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace stag::fuse
