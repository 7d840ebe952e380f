#include "fuse/interruption.h"

#include <gtest/gtest.h>

#include <list>
#include <set>

#include "testing/manual_loop.h"

namespace stag::fuse {
namespace {

constexpr Duration kInstant = std::chrono::milliseconds(10);

// Operations of a server that does not answer, whose programs are interrupted.
struct Programs {
  void interrupt(int count, std::size_t bytes) {
    for (int i = 0; i < count; ++i) interrupt(bytes, i + 1, Wait::Other);
  }
  Interruption& begin(pid_t process, Wait wait) {
    return operations.emplace_back(context, process, wait);
  }
  void interrupt(std::size_t bytes, pid_t process, Wait wait) {
    Interruption& operation = begin(process, wait);
    operation.holds(bytes);
    operation.begin([this, &operation] {
      ++ended;
      operation.end();
    });
  }
  // Whether a close(2) of the process, interrupted, ends without a wait of its own.
  bool closes_at_once(pid_t process) {
    const int before = ended;
    interrupt(0, process, Wait::Close);
    loop.pass(kInstant);
    return ended > before;
  }

  testing::ManualLoop loop;
  std::set<pid_t> going_on;  // whatever signals they get
  RequestContext context{
      .loop = loop, .is_to_end = [this](pid_t process) { return !going_on.contains(process); }};
  AbandonedBytes& abandoned = context.abandoned;
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

TEST(Interruption, leaves_a_program_waiting_that_goes_on_after_its_signal) {
  Programs programs;
  programs.going_on = {1};
  programs.interrupt(2, 0);
  programs.loop.pass(10 * Interruption::kPatience);
  EXPECT_EQ(programs.ended, 1);
  programs.going_on.clear();
  programs.loop.pass(Interruption::kPatience + kInstant);
  EXPECT_EQ(programs.ended, 2) << "another signal has ended it since";
}

TEST(Interruption, leaves_a_program_waiting_until_it_is_answered) {
  Programs programs;
  programs.going_on = {1};
  programs.interrupt(1, 0);
  programs.loop.pass(3 * Interruption::kPatience);
  programs.operations.clear();
  programs.going_on.clear();
  programs.loop.pass(3 * Interruption::kPatience);
  EXPECT_EQ(programs.ended, 0);
  EXPECT_TRUE(programs.abandoned.add(AbandonedBytes::kMost)) << "nothing is left of it";
}

TEST(Interruption, takes_its_time_for_a_close_of_a_program_that_goes_on) {
  Programs programs;
  programs.context.in_vain.add(1);
  programs.going_on = {1};
  programs.interrupt(0, 1, Wait::Close);
  programs.loop.pass(kInstant);
  programs.going_on.clear();
  programs.loop.pass(Interruption::kPatience - 2 * kInstant);
  EXPECT_EQ(programs.ended, 0);
  programs.loop.pass(3 * kInstant);
  EXPECT_EQ(programs.ended, 1);
}

TEST(Interruption, ends_a_wait_for_a_lock_at_any_signal) {
  Programs programs;
  programs.going_on = {1};
  programs.interrupt(0, 1, Wait::Lock);
  programs.loop.pass(Interruption::kPatience + kInstant);
  EXPECT_EQ(programs.ended, 1);
}

// A program that was killed while it waits for one file, and closes its others one after the other.
struct KilledProgram : ::testing::Test {
  static constexpr pid_t kProgram = 7, kOther = 8;
  KilledProgram() {
    programs.interrupt(0, kProgram, Wait::Close);
    programs.loop.pass(Interruption::kPatience + kInstant);
    EXPECT_EQ(programs.ended, 1);
  }
  Programs programs;
};

TEST_F(KilledProgram, waits_in_vain_once) {
  for (int file = 0; file < 1000; ++file) EXPECT_TRUE(programs.closes_at_once(kProgram));
}

TEST_F(KilledProgram, hurries_no_other_one_nor_what_else_is_interrupted) {
  EXPECT_FALSE(programs.closes_at_once(kOther));
  const int before = programs.ended;
  programs.interrupt(0, kProgram, Wait::Other);
  programs.loop.pass(kInstant);
  EXPECT_EQ(programs.ended, before);
}

TEST_F(KilledProgram, waits_again_where_it_was_answered_meanwhile) {
  programs.begin(kOther, Wait::Other).end();
  EXPECT_TRUE(programs.closes_at_once(kProgram));
  programs.begin(kProgram, Wait::Other).end();
  EXPECT_FALSE(programs.closes_at_once(kProgram));
}

TEST_F(KilledProgram, waits_again_where_what_it_gave_up_has_ended) {
  programs.operations.clear();
  EXPECT_FALSE(programs.closes_at_once(kProgram));
}

TEST_F(KilledProgram, waits_for_room_where_too_much_memory_is_abandoned) {
  ASSERT_TRUE(programs.abandoned.add(AbandonedBytes::kMost - AbandonedBytes::kOfOperation));
  EXPECT_FALSE(programs.closes_at_once(kProgram));
  programs.abandoned.remove(AbandonedBytes::kMost - AbandonedBytes::kOfOperation);
  programs.loop.pass(Interruption::kPatience);
  EXPECT_EQ(programs.ended, 2);
}

}  // namespace
}  // namespace stag::fuse
