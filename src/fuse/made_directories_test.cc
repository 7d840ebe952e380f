#include "fuse/made_directories.h"

#include <gtest/gtest.h>

namespace stag::fuse {
namespace {

using nfs::client::DirectoryChange;

constexpr Duration kKnownFor = std::chrono::seconds(1);

struct MadeDirectory : ::testing::Test {
  bool lacks(std::uint64_t number, const std::string& name, TimePoint at) const {
    return directories.lacks(number, name, at) > Duration::zero();
  }

  TimePoint now{};
  MadeDirectories directories{kKnownFor};
};

TEST_F(MadeDirectory, lacks_what_was_not_made_in_it) {
  directories.begin(2, 10, now);
  EXPECT_TRUE(lacks(2, "a", now));
  EXPECT_FALSE(lacks(3, "a", now)) << "nobody knows";
  directories.on_made(2, "a", {10, 11, true}, now);
  EXPECT_FALSE(lacks(2, "a", now));
  EXPECT_TRUE(lacks(2, "b", now));
}

TEST_F(MadeDirectory, is_known_for_as_long_as_the_server_was_heard_of) {
  directories.begin(2, 10, now);
  EXPECT_FALSE(lacks(2, "a", now + kKnownFor));
  directories.on_made(2, "a", {10, 11, true}, now + kKnownFor);
  EXPECT_TRUE(lacks(2, "b", now + kKnownFor));
}

TEST_F(MadeDirectory, is_known_for_what_is_left_of_the_time) {
  constexpr auto kLater = kKnownFor / 4 * 3;
  directories.begin(2, 10, now);
  EXPECT_EQ(directories.lacks(2, "a", now), kKnownFor);
  EXPECT_EQ(directories.lacks(2, "a", now + kLater), kKnownFor - kLater);
  EXPECT_EQ(directories.lacks(2, "a", now + 2 * kKnownFor), Duration::zero());
}

TEST_F(MadeDirectory, is_not_known_any_more_once_somebody_else_was_there) {
  for (const DirectoryChange& change : {DirectoryChange{11, 12, true}, DirectoryChange{10, 11}}) {
    directories.begin(2, 10, now);
    directories.on_made(2, "a", change, now);
    EXPECT_FALSE(lacks(2, "b", now));
  }
}

TEST_F(MadeDirectory, needs_a_server_that_counts_changes) {
  directories.begin(2, 0, now);
  EXPECT_FALSE(lacks(2, "a", now));
}

TEST_F(MadeDirectory, makes_room_by_forgetting_the_one_not_used_for_longest) {
  for (std::uint64_t i = 0; i <= MadeDirectories::kMostDirectories; ++i)
    directories.begin(i, 1, now + std::chrono::microseconds(i));
  EXPECT_FALSE(lacks(0, "a", now));
  EXPECT_TRUE(lacks(1, "a", now));
}

TEST_F(MadeDirectory, takes_so_much_memory_and_no_more) {
  directories.begin(2, 1, now);
  for (std::uint64_t i = 1; i <= MadeDirectories::kMostNames; ++i)
    directories.on_made(2, std::to_string(i), {i, i + 1, true}, now);
  EXPECT_TRUE(lacks(2, "a", now));
  const std::uint64_t next = MadeDirectories::kMostNames + 1;
  directories.on_made(2, "one more", {next, next + 1, true}, now);
  EXPECT_FALSE(lacks(2, "a", now));
  directories.begin(3, 1, now);
  directories.on_made(3, "b", {1, 2, true}, now);
  EXPECT_TRUE(lacks(3, "a", now)) << "the memory is free again";
}

}  // namespace
}  // namespace stag::fuse
