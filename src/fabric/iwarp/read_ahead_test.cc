#include "fabric/iwarp/read_ahead.h"

#include <gtest/gtest.h>

namespace stag::fabric {
namespace {

TEST(ReadAheadInCrowd, takes_as_much_as_eight_fpdus_of_the_size_that_came_last) {
  EXPECT_EQ(read_ahead_in_crowd(10'000, 10), 8'000U);
}

TEST(ReadAheadInCrowd, grows_for_messages_with_data_until_a_turn_takes_several_whole) {
  const std::size_t reply = 4096 + 128;  // an RDMA Write and the Send that follows it
  std::size_t ahead = kReadAheadInCrowd;
  int turns = 0;
  for (std::size_t rest = 8 * reply; rest > 0; ++turns) {
    const std::size_t read = std::min(rest, ahead);
    ahead = read_ahead_in_crowd(read, 2 * read / reply);
    rest -= read;
  }
  EXPECT_LE(turns, 4);
}

TEST(ReadAheadInCrowd, shrinks_at_once_where_small_messages_follow) {
  EXPECT_EQ(read_ahead_in_crowd(kReadAhead, 100), kReadAheadInCrowd);
}

TEST(ReadAheadInCrowd, is_the_usual_one_for_an_fpdu_that_did_not_end) {
  EXPECT_EQ(read_ahead_in_crowd(kReadAheadInCrowd, 0), kReadAhead);
}

}  // namespace
}  // namespace stag::fabric
