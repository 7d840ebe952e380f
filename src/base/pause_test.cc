#include "base/pause.h"

#include <gtest/gtest.h>

#include "testing/manual_loop.h"

namespace stag {
namespace {

using namespace std::chrono_literals;

// When it was over, in the loop's time.
Task<> note_end(Loop& loop, CancelSource& source, std::optional<TimePoint>& end) {
  co_await pause(loop, 10ms, source);
  end = loop.now();
}

struct Pausing {
  testing::ManualLoop loop;
  CancelSource source;
  std::optional<TimePoint> end;
  const TimePoint begin = loop.now();

  void start() { detach(note_end(loop, source, end)); }
};

TEST(Pause, ends_when_its_time_is_over) {
  Pausing test;
  test.start();
  test.loop.pass(9ms);
  EXPECT_FALSE(test.end);
  test.loop.pass(1ms);
  EXPECT_EQ(test.end, test.begin + 10ms);
}

TEST(Pause, ends_when_it_is_cancelled) {
  Pausing test;
  test.start();
  test.source.cancel();
  test.loop.pass(1ms);
  EXPECT_EQ(test.end, test.begin);
}

TEST(Pause, does_not_begin_when_it_is_cancelled_already) {
  Pausing test;
  test.source.cancel();
  test.start();
  EXPECT_EQ(test.end, test.begin);
}

}  // namespace
}  // namespace stag
