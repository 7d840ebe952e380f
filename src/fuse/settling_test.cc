#include "fuse/settling.h"

#include <gtest/gtest.h>

#include "testing/nfs/new_files_world.h"

namespace stag::fuse {
namespace {

using testing::NewFilesWorld;
using namespace std::chrono_literals;

TEST(Settling, sets_the_times_of_all_that_wait_once) {
  NewFilesWorld world;
  world.begin(1), world.begin(2);
  world.pass(2 * Settling::kAfter + 10ms);
  EXPECT_EQ(world.set, (std::set<std::string>{"file 1", "file 2"}));
  world.pass(10s);
  EXPECT_EQ(world.asked, 2);
  world.stop();
}

TEST(Settling, tries_again_by_itself_what_the_server_did_not_answer) {
  NewFilesWorld world;
  world.scripted.channel.lost = true;
  world.begin(1), world.begin(2);
  world.pass(2 * Settling::kAfter + 10ms);
  EXPECT_EQ(world.asked, 0);
  EXPECT_TRUE(world.files.waiting(1) && world.files.waiting(2));
  world.scripted.channel.lost = false;
  world.pass(2min);
  EXPECT_EQ(world.set, (std::set<std::string>{"file 1", "file 2"}));
  EXPECT_FALSE(world.files.any_waits());
  world.stop();
}

TEST(Settling, leaves_it_to_close_to_tell_what_the_server_refused) {
  NewFilesWorld world;
  world.refuses = true;
  world.begin(1);
  world.pass(10s);
  EXPECT_EQ(world.asked, 1);
  const auto told = world.scripted.run(world.settling.settle(1));
  ASSERT_FALSE(told);
  EXPECT_TRUE(told.error().is(nfs::client::Status::Access));
  world.stop();
}

}  // namespace
}  // namespace stag::fuse
