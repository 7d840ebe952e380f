#include "fuse/closes.h"

#include <gtest/gtest.h>

#include "testing/nfs/held_world.h"

namespace stag::fuse {
namespace {

using namespace std::chrono_literals;
using testing::Accident;

constexpr std::uint64_t kClosedFile = 7;

// A file that is open and locked at a server of version 4.
struct OpenAtServer : testing::HeldWorld {
  explicit OpenAtServer(std::uint32_t minor) : HeldWorld(minor) {
    const nfs::client::File file =
        must(files().create_open(files().root(), "file", {.mode = 0644},
                                 nfs::client::CreateMode::Unchecked, kBoth))
            .file;
    must(files().lock(file, kMine, kTen));
    opened = open_files.add(kClosedFile, {.file = file});
    open_files.on_lock(kClosedFile, opened, kMine);
  }
  OpenFiles::Node closed() { return open_files.remove(kClosedFile, opened); }
  bool is_open() {
    const auto all = clients();
    return !all.empty() && (all.front().held.opens > 0 || all.front().held.locks > 0);
  }
  void end() {
    run([](Closes& all) -> Task<Ok> {
      co_await all.end();
      co_return Ok{};
    }(closes));
    run(HeldWorld::closed());
  }

  OpenFiles open_files;
  std::uint64_t opened = 0;
  Turns lock_turns;
  int prepared = 0;
  Closes closes{loop, files(), lock_turns, [this](std::uint64_t, const OpenFiles::Open&) {
                  ++prepared;
                  return []() -> Task<void> { co_return; }();
                }};
};

TEST(Closes, give_locks_and_open_back) {
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    OpenAtServer world(minor);
    EXPECT_TRUE(world.is_open());
    world.closes.begin(world.closed());
    world.loop.drain();
    EXPECT_FALSE(world.is_open());
    EXPECT_EQ(world.prepared, 1);
    world.end();
  }
}

// Before the server has heard of it, or with the Reply.
TEST(Closes, are_tried_again_where_there_was_no_memory_for_a_call) {
  for (const std::uint32_t minor : {0u, 1u, 2u})
    for (const Accident accident : {Accident::Swallowed, Accident::Lost})
      for (int at = 1;; ++at) {
        OpenAtServer world(minor);
        const int before = world.channel.calls;
        world.channel.accident = accident;
        world.channel.why = Reason::OutOfMemory;
        world.channel.at = before + at;
        world.closes.begin(world.closed());
        world.loop.drain();
        const bool reached = world.channel.calls >= world.channel.at;
        world.loop.pass(5s);
        EXPECT_FALSE(world.is_open()) << "version 4." << minor << ", call " << at;
        world.end();
        if (!reached) {
          EXPECT_GT(at, 2) << "LOCKU and CLOSE";
          break;
        }
      }
}

TEST(Closes, wait_for_their_end) {
  OpenAtServer world(1);
  world.channel.accident = Accident::Slow;
  world.channel.at = world.channel.calls + 1;
  world.channel.answer_after = 1s;
  world.closes.begin(world.closed());
  EXPECT_TRUE(world.is_open());
  world.end();
  EXPECT_FALSE(world.is_open());
}

}  // namespace
}  // namespace stag::fuse
