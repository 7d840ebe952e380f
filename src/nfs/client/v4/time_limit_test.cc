// The time limit of a call counts what it waits for before it is sent: a slot, an owner's turn, and
// recovery. Of a server that answers nobody all calls end when the first one does.
#include <gtest/gtest.h>

#include "base/task_group.h"
#include "nfs/session/slots.h"
#include "testing/nfs/held_world.h"
#include "testing/nfs/lying_server.h"

namespace stag::nfs::client {
namespace {

using namespace std::chrono_literals;
using testing::Accident;
using testing::HeldWorld;

constexpr Duration kLimit = 2s;
// Several times as many as there are slots.
constexpr int kMany = 300;
static_assert(kMany > 4 * session::Slots::kMost);

struct Ends {
  int well = 0;
  int timed_out = 0;
  int cancelled = 0;
};

class Nfs4TimeLimit : public ::testing::TestWithParam<std::uint32_t>, public HeldWorld {
 protected:
  Nfs4TimeLimit() : HeldWorld(GetParam()) { options.calls.timeout = kLimit; }
  void TearDown() override {
    channel.accident = Accident::None;
    if (protocol) run(closed());
  }
  template <class T>
  Task<void> count(Task<Outcome<T>> task) {
    const Outcome<T> outcome = co_await std::move(task);
    if (outcome)
      ++ends.well;
    else if (outcome.error().call.reason == Reason::TimedOut)
      ++ends.timed_out;
    else if (outcome.error().cancelled())
      ++ends.cancelled;
  }
  void look_at_once() {
    for (int i = 0; i < kMany; ++i) group.add(count(files().getattr(files().root())));
    loop.drain();
  }
  void recover() {
    channel.accident = Accident::None;
    EXPECT_TRUE(run(files().getattr(files().root())).ok()) << "nothing is lost";
  }

  Ends ends;
  TaskGroup group;
};

class Nfs41TimeLimit : public Nfs4TimeLimit {};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4TimeLimit, ::testing::Values(0u, 1u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });
INSTANTIATE_TEST_SUITE_P(Minor, Nfs41TimeLimit, ::testing::Values(1u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs41TimeLimit, counts_the_wait_for_a_slot) {
  files();
  channel.fall_silent();
  look_at_once();
  loop.pass(kLimit - 1ns);
  EXPECT_EQ(ends.timed_out, 0);
  loop.pass(1ns);
  EXPECT_EQ(ends.timed_out, kMany);
  recover();
}

TEST_P(Nfs41TimeLimit, leaves_a_call_that_waited_for_a_slot_what_is_left_of_it) {
  files();
  channel.fall_silent();
  look_at_once();
  loop.pass(kLimit / 2);
  group.add(count(files().getattr(files().root())));
  loop.pass(kLimit / 2);
  EXPECT_EQ(ends.timed_out, kMany);
  loop.pass(kLimit / 2);
  EXPECT_EQ(ends.timed_out, kMany + 1);
  recover();
}

TEST_P(Nfs41TimeLimit, is_not_waited_for_by_who_is_cancelled) {
  CancelSource cancel;
  files();
  channel.fall_silent();
  look_at_once();
  FileSystemOptions with = options;
  with.calls.cancel = cancel;
  FileSystem cancelled = files().with(with);
  group.add(count(cancelled.getattr(files().root())));
  loop.drain();
  cancel.cancel();
  loop.drain();
  EXPECT_EQ(ends.cancelled, 1);
  loop.pass(kLimit);
  recover();
}

TEST_P(Nfs41TimeLimit, counts_the_wait_for_recovery) {
  files();
  channel.restart();
  channel.fall_silent();
  // The first call is answered, and finds the session lost.
  ++channel.at;
  look_at_once();
  loop.pass(kLimit);
  EXPECT_EQ(ends.timed_out, kMany);
  recover();
}

TEST_P(Nfs4TimeLimit, counts_the_wait_for_the_turn_of_an_owner) {
  const File file = must(files().create_open(files().root(), "file", {.mode = 0644},
                                             CreateMode::Unchecked, kBoth))
                        .file;
  channel.fall_silent();
  constexpr int kLocks = 20;
  for (std::uint64_t i = 0; i < kLocks; ++i)
    group.add(count(files().lock(file, {1, i}, {i, 1, true})));
  loop.pass(kLimit);
  EXPECT_EQ(ends.timed_out, kLocks);
  channel.accident = Accident::None;
  must(files().close(file));
}

// Each answer comes in time, and those behind the first round of slots wait for longer than one
// call may take.
TEST(Nfs41TimeLimitOfSlots, begins_anew_while_the_server_answers_others) {
  testing::LyingServer server;
  server.options.calls.timeout = server.options.calls.jukebox_for = kLimit;
  server.takes = [](const v4::COMPOUND4args&) -> Duration { return kLimit * 3 / 4; };
  FileSystem files = server.files();
  constexpr int kRounds = 4, kSlots = 4;
  int well = 0;
  TaskGroup group;
  for (int i = 0; i < kRounds * kSlots; ++i)
    group.add([](FileSystem& by, int& answered) -> Task<void> {
      const Outcome<Attributes> got = co_await by.getattr(by.root());
      answered += got ? 1 : 0;
    }(files, well));
  server.loop.pass(kLimit * kRounds);
  EXPECT_EQ(well, kRounds * kSlots);
}

}  // namespace
}  // namespace stag::nfs::client
