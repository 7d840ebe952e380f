#include "fuse/interruption.h"

#include <gtest/gtest.h>

#include <list>

#include "testing/manual_loop.h"

namespace stag::fuse {
namespace {

constexpr Duration kInstant = std::chrono::milliseconds(10);

// Operations of a server that does not answer, whose programs are interrupted.
struct Programs {
  void interrupt(int count, std::size_t bytes) {
    for (int i = 0; i < count; ++i) {
      Interruption& operation = operations.emplace_back(loop, abandoned);
      operation.holds(bytes);
      operation.begin([this] { ++ended; });
    }
  }

  testing::ManualLoop loop;
  AbandonedBytes abandoned;
  std::list<Interruption> operations;
  int ended = 0;
};

TEST(Interruption, ends_the_wait_of_hundreds_of_programs_after_two_seconds) {
  Programs programs;
  programs.interrupt(1000, 0);
  programs.interrupt(200, std::size_t{1} << 20);
  programs.loop.pass(Interruption::kPatience - kInstant);
  EXPECT_EQ(programs.ended, 0);
  programs.loop.pass(2 * kInstant);
  EXPECT_EQ(programs.ended, 1200);
}

TEST(Interruption, waits_where_too_much_memory_is_abandoned_until_others_have_ended) {
  constexpr std::size_t kHuge = AbandonedBytes::kMost / 2;
  Programs programs;
  programs.interrupt(2, kHuge);
  programs.loop.pass(Interruption::kPatience + kInstant);
  EXPECT_EQ(programs.ended, 1);
  programs.loop.pass(10 * Interruption::kPatience);
  EXPECT_EQ(programs.ended, 1) << "what is kept is bounded";
  programs.operations.pop_front();
  programs.loop.pass(Interruption::kPatience + kInstant);
  EXPECT_EQ(programs.ended, 2) << "it is tried again";
  programs.operations.clear();
  EXPECT_TRUE(programs.abandoned.add(AbandonedBytes::kMost));
}

TEST(Interruption, is_over_with_the_answer) {
  Programs programs;
  programs.interrupt(1, 0);
  programs.operations.front().end();
  programs.loop.pass(2 * Interruption::kPatience);
  EXPECT_EQ(programs.ended, 0);
}

}  // namespace
}  // namespace stag::fuse
