#include "nfs/lock/lock_manager.h"

#include <gtest/gtest.h>

#include <string>

namespace stag::nfs::lock {
namespace {

using namespace nlm;

TEST(LockManagerAlone, grants_nothing_that_was_taken_back_before_it_was_locked) {
  LockManager manager;
  const auto owner = std::make_shared<Owner>(Owner{{"192.0.2.1", "name"}, "oh", 1});
  const auto other = std::make_shared<Owner>(Owner{{"192.0.2.1", "name"}, "oh", 2});
  const auto status = [&](Range withdrawn, const std::string& file, const Owner& by) {
    const LockManager::Begun begun(manager, {"handle", owner, {10, 19}});
    manager.withdraw(file, by, withdrawn);
    const nlm4_stats stat =
        manager.lock({{{}, owner, {10, 19}, true}, false, false, 0, {}, begun.get()}, TimePoint{});
    manager.unlock({}, *owner, {});
    return stat;
  };
  EXPECT_EQ(status({10, 19}, "handle", *owner), NLM4_DENIED);
  EXPECT_EQ(status({}, "handle", *owner), NLM4_DENIED);
  EXPECT_EQ(status({11, 19}, "handle", *owner), NLM4_GRANTED) << "not all of it";
  EXPECT_EQ(status({10, 19}, "another", *owner), NLM4_GRANTED);
  EXPECT_EQ(status({10, 19}, "handle", *other), NLM4_GRANTED);
  EXPECT_EQ(manager.size(), 0u);
}

TEST(LockManagerAlone, never_has_more_grants_pending_than_may_wait) {
  LockManager manager({.waiters_of_address = 10});
  std::size_t told = 0;
  manager.on_grant([&](const Client&, Ticket) { ++told; });
  const auto owner = [](const char* address) {
    return std::make_shared<Owner>(Owner{{address, "name"}, "oh", 1});
  };
  const OwnerPtr a = owner("192.0.2.1"), b = owner("192.0.2.2");
  const auto lock = [&](const OwnerPtr& who, Range range, bool block) {
    return manager.lock({{{}, who, range, true}, block, false, 0, {}}, TimePoint{});
  };
  for (std::uint64_t round = 0; round < 20; ++round) {
    const Range all{round * 100, round * 100 + 99};
    ASSERT_EQ(lock(b, all, false), NLM4_GRANTED);
    for (std::uint64_t byte = all.first; byte <= all.last; ++byte)
      ASSERT_EQ(lock(a, {byte, byte}, true), byte < 10 ? NLM4_BLOCKED : NLM4_DENIED_NOLOCKS);
    ASSERT_EQ(manager.unlock({}, *b, all), NLM4_GRANTED);
    EXPECT_EQ(manager.pending_count(), 10u);
  }
  EXPECT_EQ(told, 10u);
  EXPECT_EQ(manager.size(), 11u) << "one lock and ten grants";
  ASSERT_EQ(manager.unlock({}, *a, {0, 3}), NLM4_GRANTED);
  EXPECT_EQ(manager.pending_count(), 6u) << "unlocked before it was told";
  manager.release(a->client);
  EXPECT_EQ(manager.pending_count(), 0u);
  EXPECT_EQ(manager.size(), 0u);
}

}  // namespace
}  // namespace stag::nfs::lock
