// An owner who is told that memory ran out has the locks that he had.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "nfs/lock/range_locks.h"
#include "testing/failing_new.h"

namespace stag::nfs::lock {
namespace {

OwnerPtr owner_named(const std::string& name) {
  return std::make_shared<const Owner>(Owner{{"192.0.2.1", "client"}, name, 1});
}

class NlmLockMemory : public ::testing::Test {
 protected:
  // Sets or ends a lock with each of its allocations failing once, and then to its end. After each
  // failure `unchanged` is to be so.
  template <class Check>
  void fail_each(const Range& range, std::optional<bool> exclusive, Check unchanged) {
    const RangeLocks::Change change = locks.plan(mine, range, exclusive);
    for (std::size_t n = 1;; ++n) {
      stag::testing::allocations_until_failure = n;
      try {
        locks.apply(change);
        stag::testing::allocations_until_failure = 0;
        EXPECT_GT(n, 1u) << "it allocates nothing";
        return;
      } catch (const std::bad_alloc&) {
      }
      unchanged(n);
    }
  }
  // Whether another owner may not lock this range.
  bool keeps_out(const Range& range, bool exclusive = true) const {
    return locks.conflict(*other, range, exclusive).has_value();
  }

  RangeLocks locks;
  const OwnerPtr mine = owner_named("mine"), other = owner_named("other");
};

TEST_F(NlmLockMemory, that_runs_out_in_UNLOCK_leaves_all_that_was_locked) {
  locks.apply(locks.plan(mine, {0, 99}, true));
  fail_each({40, 49}, std::nullopt, [&](std::size_t n) {
    EXPECT_TRUE(keeps_out({0, 39})) << n;
    EXPECT_TRUE(keeps_out({45, 45})) << n;
    EXPECT_TRUE(keeps_out({99, 99})) << n;
    EXPECT_EQ(locks.size(), 1u) << n;
  });
  EXPECT_FALSE(keeps_out({40, 49}));
  EXPECT_TRUE(keeps_out({39, 39}));
  EXPECT_TRUE(keeps_out({50, 50}));
  EXPECT_EQ(locks.size(), 2u);
}

TEST_F(NlmLockMemory, that_runs_out_in_an_upgrade_leaves_the_lock_as_it_was) {
  locks.apply(locks.plan(mine, {0, 99}, false));
  fail_each({40, 49}, true, [&](std::size_t n) {
    EXPECT_FALSE(keeps_out({0, 99}, false)) << n;
    EXPECT_TRUE(keeps_out({45, 45})) << n;
    EXPECT_EQ(locks.size(), 1u) << n;
  });
  EXPECT_TRUE(keeps_out({40, 40}, false));
  EXPECT_FALSE(keeps_out({0, 39}, false));
  EXPECT_EQ(locks.size(), 3u);
}

TEST_F(NlmLockMemory, that_runs_out_in_the_first_lock_of_an_owner_leaves_no_owner) {
  fail_each({0, 9}, true, [&](std::size_t n) {
    EXPECT_FALSE(keeps_out({0, 9})) << n;
    EXPECT_EQ(locks.holder(*mine), nullptr) << n;
  });
  EXPECT_TRUE(keeps_out({0, 9}));
  EXPECT_EQ(locks.holder(*mine), mine);
}

}  // namespace
}  // namespace stag::nfs::lock
