// The sentences of RFC 8881 2.10.6.1 about a requester's slots, and of RFC 8267 6.6.
#include "nfs/session/slots.h"

#include <gtest/gtest.h>

#include "testing/proves.h"

namespace stag::nfs::session {
namespace {

using Number = Slots::Number;

TEST(Slots, count_up_in_each_slot_by_itself) {
  Slots slots;
  slots.reset(2);
  const auto first = *slots.take();
  const auto second = *slots.take();
  EXPECT_EQ(first.slot, 0u);
  EXPECT_EQ(first.sequence, 1u);
  EXPECT_EQ(second.slot, 1u);
  EXPECT_EQ(second.sequence, 1u);
  EXPECT_EQ(Slots::highest_of(slots.in_use()), 1u);
  slots.give_back(first, Number::Used);
  const auto again = *slots.take();
  EXPECT_EQ(again.slot, 0u);
  EXPECT_EQ(again.sequence, 2u);
}

TEST(Slots, are_never_taken_twice_at_a_time) {
  Slots slots;
  slots.reset(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(slots.take().has_value());
  EXPECT_FALSE(slots.take().has_value());
}

TEST(Slots, await_the_answer_to_the_call_that_took_them_and_to_no_other) {
  Slots slots;
  slots.reset(2);
  EXPECT_FALSE(slots.awaits(0, 1)) << "nothing was sent";
  const auto first = *slots.take();
  EXPECT_TRUE(slots.awaits(0, 1));
  EXPECT_FALSE(slots.awaits(0, 2));
  EXPECT_FALSE(slots.awaits(1, 1));
  EXPECT_FALSE(slots.awaits(64, 1)) << "no client has so many";
  slots.give_back(first, Number::Used);
  EXPECT_FALSE(slots.awaits(0, 1));
}

TEST(Slots, await_no_answer_to_a_call_that_was_given_up) {
  Slots slots;
  slots.reset(1);
  slots.give_back(*slots.take(), Number::Doubtful);
  EXPECT_FALSE(slots.awaits(0, 1));
  auto doubtful = *slots.take();
  EXPECT_FALSE(slots.awaits(0, 1));
  slots.settle(doubtful);
  EXPECT_TRUE(slots.awaits(0, 2));
}

TEST(Slots, keep_a_number_that_the_server_did_not_use) {
  Slots slots;
  slots.reset(1);
  slots.give_back(*slots.take(), Number::Unused);
  EXPECT_EQ(slots.take()->sequence, 1u);
}

TEST(Slots, are_taken_last_when_in_doubt_and_settled_with_the_same_number) {
  PROVES("R8267-6.6-d");
  Slots slots;
  slots.reset(2);
  slots.give_back(*slots.take(), Number::Doubtful);
  const auto certain = *slots.take();
  EXPECT_EQ(certain.slot, 1u);
  auto doubtful = *slots.take();
  EXPECT_EQ(doubtful.slot, 0u);
  EXPECT_TRUE(doubtful.doubtful);
  EXPECT_EQ(doubtful.sequence, 1u);
  slots.settle(doubtful);
  EXPECT_EQ(doubtful.sequence, 2u);
  slots.give_back(doubtful, Number::Used);
  EXPECT_FALSE(slots.take()->doubtful);
}

TEST(Slots, are_left_alone_above_the_target_of_the_server) {
  Slots slots;
  slots.reset(4);
  slots.aim_at(1);
  EXPECT_EQ(slots.usable(), 2u);
  EXPECT_TRUE(slots.take() && slots.take());
  EXPECT_FALSE(slots.take().has_value());
  slots.aim_at(100);
  EXPECT_EQ(slots.take()->slot, 2u);
}

TEST(Slots, are_dropped_when_the_server_does_not_know_them) {
  Slots slots;
  slots.reset(4);
  EXPECT_TRUE(slots.drop_from(2));
  slots.aim_at(3);
  EXPECT_EQ(slots.usable(), 2u);
  EXPECT_FALSE(slots.drop_from(0));
  EXPECT_FALSE(slots.take().has_value());
}

TEST(Slots, change_nothing_in_the_session_after_theirs) {
  Slots slots;
  slots.reset(1);
  const auto old = *slots.take();
  slots.reset(1);
  slots.give_back(old, Number::Used);
  const auto turn = *slots.take();
  EXPECT_EQ(turn.sequence, 1u);
  EXPECT_FALSE(slots.current(old));
  slots.give_back(old, Number::Doubtful);
  EXPECT_FALSE(slots.take().has_value()) << "still in use";
}

TEST(Slots, are_no_more_than_this_client_has_room_for) {
  Slots slots;
  slots.reset(~0u);
  EXPECT_EQ(slots.usable(), Slots::kMost);
  slots.aim_at(~0u);
  EXPECT_EQ(slots.usable(), Slots::kMost);
}

TEST(Slots, count_on_behind_the_largest_number) {
  Slots slots;
  slots.reset(1);
  Slots::Turn turn = *slots.take();
  turn.sequence = ~0u;
  slots.give_back(turn, Number::Used);
  EXPECT_EQ(slots.take()->sequence, 0u);
}

}  // namespace
}  // namespace stag::nfs::session
