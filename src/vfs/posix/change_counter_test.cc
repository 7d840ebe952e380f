#include "vfs/posix/change_counter.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace stag::vfs::posix {
namespace {

constexpr std::uint64_t kTick = 4'000'000;
constexpr std::uint64_t kStart = 1'700'000'000 * std::uint64_t{1'000'000'000};

// An object in a file system whose clock ticks.
struct World {
  std::uint64_t now = kStart;
  std::uint64_t ctime = kStart;
  void change() { ctime = now / kTick * kTick; }
  std::uint64_t seen(ChangeCounter& counter) const {
    return counter.seen(ctime, [this] { return now; });
  }
  std::uint64_t changed(ChangeCounter& counter) const {
    return counter.changed(ctime, [this] { return now; });
  }
};

TEST(ChangeCounter, rises_with_every_change_within_a_tick) {
  World world;
  ChangeCounter counter;
  std::uint64_t last = world.seen(counter);
  for (int i = 0; i < 100; ++i) {
    world.now += 10;
    world.change();
    const std::uint64_t next = world.changed(counter);
    EXPECT_GT(next, last);
    EXPECT_EQ(world.seen(counter), next);
    last = next;
  }
}

TEST(ChangeCounter, follows_changes_of_others_by_the_ctime) {
  World world;
  ChangeCounter counter;
  const std::uint64_t before = world.seen(counter);
  world.now += 3 * kTick;
  world.change();
  EXPECT_GT(world.seen(counter), before);
}

TEST(ChangeCounter, is_the_same_after_an_object_left_alone_was_forgotten) {
  World world;
  world.now += 2 * ChangeCounter::kSettled;
  ChangeCounter before;
  ChangeCounter after;
  const std::uint64_t first = world.seen(before);
  world.now += kTick;
  EXPECT_EQ(world.seen(after), first);
}

// Whatever is changed, seen and forgotten: a number that was said once never stands for something
// else, and none is smaller than one before.
TEST(ChangeCounter, never_goes_back_and_never_stands_for_two_states) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    World world;
    auto counter = std::make_unique<ChangeCounter>();
    std::uint64_t last = world.seen(*counter);
    bool changed_since = false;
    for (int step = 0; step < 100; ++step) {
      // Of a few nanoseconds to some ticks, rarely of seconds.
      world.now += 1 + (random() >> (64 - 1 - random() % 33));
      if (random() % 3 == 0) counter = std::make_unique<ChangeCounter>();
      if (random() % 2 == 0) {
        world.seen(*counter);
        world.change();
        ASSERT_GT(world.changed(*counter), last);
        changed_since = true;
      }
      const std::uint64_t next = world.seen(*counter);
      ASSERT_GE(next, last);
      if (changed_since) {
        ASSERT_GT(next, last);
      }
      changed_since = false;
      last = next;
    }
  }
}

}  // namespace
}  // namespace stag::vfs::posix
