// Hosts that have given all their locks back: nobody waits for them after a restart.
#include <gtest/gtest.h>

#include <algorithm>

#include "testing/nfs/lock_service_fixture.h"

namespace stag::nfs::lock {
namespace {

using namespace nlm;
using namespace std::chrono_literals;

using IdleHosts = LockServiceFixture;

TEST_F(IdleHosts, are_neither_told_of_an_orderly_restart_nor_waited_for) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  ASSERT_EQ(unlock(kA), NLM4_GRANTED);
  ASSERT_TRUE(is_recorded(kA)) << "no write for each lock that is released";
  restart();
  EXPECT_FALSE(is_recorded(kA));
  EXPECT_TRUE(peers_.called.empty());
  EXPECT_EQ(lock(kB), NLM4_GRANTED);
}

TEST_F(IdleHosts, are_those_only_that_neither_hold_nor_wait) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, true), NLM4_BLOCKED);
  restart();
  EXPECT_TRUE(is_recorded(kA));
  EXPECT_TRUE(is_recorded(kB));
  EXPECT_NE(std::ranges::count(peers_.called, kA), 0);
  EXPECT_EQ(lock(kB), NLM4_DENIED_GRACE_PERIOD);
}

TEST_F(IdleHosts, are_told_of_the_next_restart_when_the_last_one_could_not_be_told) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  restart();
  peers_.called.clear();
  restart();
  EXPECT_NE(std::ranges::count(peers_.called, kA), 0);
}

TEST_F(IdleHosts, are_waited_for_after_a_crash_but_no_longer_than_some_minutes) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  ASSERT_EQ(unlock(kA), NLM4_GRANTED);
  loop_.pass(1min);
  EXPECT_TRUE(is_recorded(kA)) << "it has just had a lock, and may want one again";
  loop_.pass(1min);
  EXPECT_FALSE(is_recorded(kA));
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  EXPECT_TRUE(is_recorded(kA));
  loop_.pass(1h);
  EXPECT_TRUE(is_recorded(kA)) << "it holds one";
  ASSERT_EQ(unlock(kA), NLM4_GRANTED);
  crash();
  begin();
  EXPECT_EQ(lock(kB), NLM4_DENIED_GRACE_PERIOD);
}

}  // namespace
}  // namespace stag::nfs::lock
