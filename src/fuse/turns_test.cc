#include "fuse/turns.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/completion.h"
#include "base/result.h"
#include "base/task_group.h"

namespace stag::fuse {
namespace {

constexpr std::uint64_t kTaken = 7, kFree = 8;

// Operations that note what they do, and end when they are told to.
struct TurnTakers {
  Task<void> alone(Turns::Key key, char name, Completion<Ok>& end) {
    const Turns::Turn turn = co_await turns.alone(key);
    co_await until(name, end);
  }
  Task<void> together(Turns::Key key, char name, Completion<Ok>& end) {
    const Turns::Turn turn = co_await turns.together(key);
    co_await until(name, end);
  }
  Task<void> until(char name, Completion<Ok>& end) {
    log += name;
    co_await end;
  }

  Turns turns;
  TaskGroup tasks;
  std::string log;
};

TEST(Turns, one_that_is_alone_waits_for_those_before_it_and_others_for_it) {
  TurnTakers all;
  Completion<Ok> a, b, c, d;
  all.tasks.add(all.together(kTaken, 'a', a));
  all.tasks.add(all.together(kTaken, 'b', b));
  EXPECT_EQ(all.log, "ab");
  EXPECT_FALSE(all.turns.taken(kTaken));
  all.tasks.add(all.alone(kTaken, 'c', c));
  EXPECT_TRUE(all.turns.taken(kTaken));
  all.tasks.add(all.together(kTaken, 'd', d));
  a.complete(Ok{});
  EXPECT_EQ(all.log, "ab");
  b.complete(Ok{});
  EXPECT_EQ(all.log, "abc");
  c.complete(Ok{});
  EXPECT_EQ(all.log, "abcd");
  EXPECT_FALSE(all.turns.taken(kTaken));
  d.complete(Ok{});
}

TEST(Turns, two_that_are_alone_follow_each_other) {
  TurnTakers all;
  Completion<Ok> a, b;
  all.tasks.add(all.alone(kTaken, 'a', a));
  all.tasks.add(all.alone(kTaken, 'b', b));
  EXPECT_EQ(all.log, "a");
  a.complete(Ok{});
  EXPECT_EQ(all.log, "ab");
  b.complete(Ok{});
  EXPECT_FALSE(all.turns.taken(kTaken));
}

TEST(Turns, other_files_do_not_wait) {
  TurnTakers all;
  Completion<Ok> a, b;
  all.tasks.add(all.alone(kTaken, 'a', a));
  all.tasks.add(all.alone(kFree, 'b', b));
  EXPECT_EQ(all.log, "ab");
  a.complete(Ok{});
  b.complete(Ok{});
}

TEST(Turns, other_owners_do_not_wait) {
  TurnTakers all;
  Completion<Ok> a, b, c;
  all.tasks.add(all.alone({kTaken, 1, 0}, 'a', a));
  all.tasks.add(all.alone({kTaken, 1, 1}, 'b', b));
  all.tasks.add(all.alone({kTaken, 0, 1}, 'c', c));
  EXPECT_EQ(all.log, "abc");
  a.complete(Ok{});
  b.complete(Ok{});
  c.complete(Ok{});
}

}  // namespace
}  // namespace stag::fuse
