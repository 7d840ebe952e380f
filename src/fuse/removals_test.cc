#include "fuse/removals.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "base/task_group.h"

namespace stag::fuse {
namespace {

constexpr std::uint64_t kLosing = 7, kAnother = 8;

DirectoryName called(const std::string& name, char directory = 'd') {
  const std::array<std::byte, 2> bytes{static_cast<std::byte>(directory), std::byte{7}};
  return {*nfs::client::Handle::from(bytes), name};
}

Task<void> note(Task<void> waits, bool& ended) {
  co_await std::move(waits);
  ended = true;
}

struct TakingNames : ::testing::Test {
  Removals removals;
  TaskGroup tasks;
};

TEST_F(TakingNames, an_open_waits_for_all_removals_of_its_file_and_for_no_others) {
  std::optional<Removals::Removal> first, second, another;
  first.emplace(removals, called("a")).is_of(kLosing);
  second.emplace(removals, called("b")).is_of(kLosing);
  another.emplace(removals, called("c")).is_of(kAnother);
  bool ended = false;
  tasks.add(note(removals.ended(kLosing), ended));
  another.reset();
  first.reset();
  EXPECT_FALSE(ended);
  EXPECT_TRUE(removals.in_progress(kLosing));
  second.reset();
  EXPECT_TRUE(ended);
  EXPECT_FALSE(removals.in_progress(kLosing));
}

TEST_F(TakingNames, a_look_up_waits_for_the_removal_of_that_name_in_that_directory) {
  std::optional<Removals::Removal> removal;
  removal.emplace(removals, called("a"));
  bool elsewhere = false, other = false, same = false;
  tasks.add(note(removals.ended(called("a", 'e')), elsewhere));
  tasks.add(note(removals.ended(called("b")), other));
  tasks.add(note(removals.ended(called("a")), same));
  EXPECT_TRUE(elsewhere && other);
  EXPECT_FALSE(same);
  removal.reset();
  EXPECT_TRUE(same);
}

TEST_F(TakingNames, a_removal_waits_for_all_look_ups_of_that_name_that_are_on_their_way) {
  std::optional<Removals::Look> first, second;
  first.emplace(removals, called("a"));
  second.emplace(removals, called("a"));
  bool other = false, same = false;
  tasks.add(note(removals.looked(called("b")), other));
  tasks.add(note(removals.looked(called("a")), same));
  EXPECT_TRUE(other);
  first.reset();
  EXPECT_FALSE(same);
  second.reset();
  EXPECT_TRUE(same);
}

TEST_F(TakingNames, a_removal_unknown_to_the_kernel_keeps_no_open_waiting) {
  Removals::Removal removal(removals, called("a"));
  removal.done();
  EXPECT_FALSE(removals.in_progress(0));
  EXPECT_EQ(removals.lost(0), nullptr);
}

TEST_F(TakingNames, a_file_has_lost_a_name_when_the_server_says_so_until_the_kernel_forgets_it) {
  Removals::Removal(removals, called("a")).is_of(kLosing);
  EXPECT_EQ(removals.lost(kLosing), nullptr);
  {
    Removals::Removal removal(removals, called("a"));
    removal.is_of(kLosing);
    removal.done();
  }
  ASSERT_NE(removals.lost(kLosing), nullptr);
  EXPECT_EQ(*removals.lost(kLosing), called("a"));
  EXPECT_EQ(removals.lost(kAnother), nullptr);
  removals.forget(kLosing);
  EXPECT_EQ(removals.lost(kLosing), nullptr);
}

TEST_F(TakingNames, the_latest_contended_names_are_remembered) {
  removals.contend(called("first"));
  for (std::size_t i = 1; i < Removals::kMostContended; ++i)
    removals.contend(called(std::to_string(i)));
  EXPECT_TRUE(removals.is_contended(called("first")));
  EXPECT_FALSE(removals.is_contended(called("first", 'e')));
  removals.contend(called("first"));
  removals.contend(called("last"));
  EXPECT_TRUE(removals.is_contended(called("first")));
  EXPECT_FALSE(removals.is_contended(called("1"))) << "the one not met for longest";
}

}  // namespace
}  // namespace stag::fuse
