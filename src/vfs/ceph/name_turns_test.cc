#include "vfs/ceph/name_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace stag::vfs::ceph {
namespace {

using namespace std::chrono_literals;

TEST(CephNameTurns, are_taken_together_but_for_renames) {
  NameTurns turns(0ms);
  {
    const auto one = turns.together();
    EXPECT_TRUE(one.has_value());
    EXPECT_TRUE(turns.together().has_value());
    EXPECT_FALSE(turns.alone().has_value());
  }
  const auto rename = turns.alone();
  EXPECT_TRUE(rename.has_value());
  EXPECT_FALSE(turns.together().has_value());
  EXPECT_FALSE(turns.alone().has_value());
}

TEST(CephNameTurns, are_waited_for) {
  NameTurns turns(1h);
  std::optional<NameTurns::Turn> look_up = turns.together();
  std::thread renames([&] { EXPECT_TRUE(turns.alone().has_value()); });
  look_up.reset();
  renames.join();
  EXPECT_TRUE(turns.together().has_value());
}

TEST(CephNameTurns, are_not_lost_to_a_rename_that_waits_for_what_never_ends) {
  NameTurns turns(1ms, 1h);
  const auto never_ends = turns.together();
  EXPECT_FALSE(turns.alone().has_value());
  EXPECT_TRUE(turns.together().has_value()) << "it has given up";
  std::atomic<bool> over = false;
  std::thread renames([&] {
    while (!over) EXPECT_FALSE(turns.alone().has_value());
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(turns.together().has_value()) << "it keeps nobody out";
  over = true;
  renames.join();
}

}  // namespace
}  // namespace stag::vfs::ceph
