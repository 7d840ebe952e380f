#include "base/task.h"

#include <gtest/gtest.h>

#include "base/completion.h"
#include "base/reason.h"
#include "base/task_group.h"

namespace stag {
namespace {

Task<int> ready(int value) {
  co_return value;
}

Task<void> await_many(int count, long* sum) {
  for (int i = 0; i < count; ++i) *sum += co_await ready(1);
}

TEST(Task, awaits_a_million_ready_tasks_in_constant_stack) {
  long sum = 0;
  detach(await_many(1'000'000, &sum));
  EXPECT_EQ(sum, 1'000'000);
}

Task<int> nest(int depth) {
  if (depth == 0) co_return 0;
  const int below = co_await nest(depth - 1);
  co_return below + 1;
}

Task<void> store(Task<int> task, int* result) {
  *result = co_await std::move(task);
}

TEST(Task, runs_only_when_awaited) {
  bool ran = false;
  auto body = [](bool* flag) -> Task<int> {
    *flag = true;
    co_return 7;
  };
  Task<int> task = body(&ran);
  EXPECT_FALSE(ran);
  int result = 0;
  detach(store(std::move(task), &result));
  EXPECT_TRUE(ran);
  EXPECT_EQ(result, 7);
}

TEST(Task, returns_through_nested_awaits) {
  int result = -1;
  detach(store(nest(1000), &result));
  EXPECT_EQ(result, 1000);
}

Task<void> wait_for(Completion<int>& completion, int* result) {
  const int value = co_await completion;
  *result += value;
}

struct Ended final : TaskEnd {
  void on_task_end() noexcept override {
    sum += task.result();
    task = {};
  }
  Task<int> task;
  int sum = 0;
};

Task<int> value_of(Completion<int>& completion) {
  const int value = co_await completion;
  co_return value;
}

TEST(Task, tells_its_starter_that_it_has_ended_and_may_be_destroyed_there) {
  Ended ended;
  ended.task = ready(2);
  ended.task.start(ended);
  EXPECT_EQ(ended.sum, 2);
  EXPECT_FALSE(ended.task);
  Completion<int> later;
  ended.task = value_of(later);
  ended.task.start(ended);
  EXPECT_TRUE(ended.task);
  later.complete(5);
  EXPECT_EQ(ended.sum, 7);
  EXPECT_FALSE(ended.task);
}

Task<int> throwing(Completion<int>* wait) {
  if (wait != nullptr) static_cast<void>(co_await *wait);
  throw 7;
}

Task<void> throwing_nothing_back() {
  throw 8;
  co_return;
}

Task<void> catching(Completion<int>* wait, int* caught) {
  try {
    static_cast<void>(co_await throwing(wait));
  } catch (int what) {
    *caught += what;
  }
  try {
    co_await throwing_nothing_back();
  } catch (int what) {
    *caught += what;
  }
}

TEST(Task, throws_what_left_it_where_it_is_awaited) {
  int caught = 0;
  detach(catching(nullptr, &caught));
  EXPECT_EQ(caught, 15);
  Completion<int> later;
  detach(catching(&later, &caught));
  EXPECT_EQ(caught, 15);
  later.complete(0);
  EXPECT_EQ(caught, 30);
}

struct Failed final : TaskEnd {
  void on_task_end() noexcept override {
    try {
      static_cast<void>(task.result());
    } catch (int what) {
      caught = what;
    }
    task = {};
  }
  Task<int> task;
  int caught = 0;
};

TEST(Task, throws_its_exception_where_its_result_is_asked_for) {
  Failed failed;
  failed.task = throwing(nullptr);
  failed.task.start(failed);
  EXPECT_EQ(failed.caught, 7);
}

TEST(Task, traces_what_left_it_when_nobody_awaits_it) {
  const std::uint64_t before = reason_counters().of(Reason::TaskFailed);
  detach(throwing_nothing_back());
  EXPECT_EQ(reason_counters().of(Reason::TaskFailed), before + 1);
}

TEST(TaskGroup, counts_a_task_that_has_thrown_as_ended) {
  const std::uint64_t before = reason_counters().of(Reason::TaskFailed);
  TaskGroup group;
  group.add(throwing_nothing_back());
  EXPECT_EQ(group.running(), 0u);
  EXPECT_EQ(reason_counters().of(Reason::TaskFailed), before + 1);
}

TEST(Completion, resumes_the_waiter_with_its_value) {
  Completion<int> completion;
  int result = 0;
  detach(wait_for(completion, &result));
  EXPECT_EQ(result, 0);
  completion.complete(5);
  EXPECT_EQ(result, 5);
}

TEST(Completion, does_not_suspend_when_it_is_complete_already) {
  Completion<int> completion;
  completion.complete(3);
  int result = 0;
  detach(wait_for(completion, &result));
  EXPECT_EQ(result, 3);
}

TEST(TaskGroup, holds_a_window_of_running_tasks_and_joins_them) {
  Completion<int> first, second;
  int sum = 0;
  bool joined = false;
  TaskGroup group;
  group.add(wait_for(first, &sum));
  group.add(wait_for(second, &sum));
  EXPECT_EQ(group.running(), 2u);
  auto join = [](TaskGroup& g, bool* done) -> Task<void> {
    co_await g.join();
    *done = true;
  };
  detach(join(group, &joined));
  first.complete(1);
  EXPECT_FALSE(joined);
  second.complete(2);
  EXPECT_TRUE(joined);
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace stag
