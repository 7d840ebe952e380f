#include "rpc/gss/awaited_lock.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/task_group.h"
#include "testing/manual_loop.h"

namespace stag::rpc {
namespace {

using testing::ManualLoop;

Task<> use(AwaitedLock& lock, Loop& loop, int number, std::vector<int>& order) {
  co_await lock.lock(loop);
  order.push_back(number);
  co_await resume_on(loop);
  lock.unlock();
}

TEST(AwaitedLock, is_had_by_one_at_a_time_in_the_order_of_asking) {
  ManualLoop loop;
  AwaitedLock lock;
  std::vector<int> order;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  TaskGroup tasks;
  for (int i = 0; i < 4; ++i) tasks.add(use(lock, loop, i, order));
  loop.drain();
  EXPECT_TRUE(order.empty());
  lock.unlock();
  EXPECT_FALSE(lock.try_lock()) << "it goes to who has waited";
  loop.drain();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(lock.try_lock());
}

}  // namespace
}  // namespace stag::rpc
