// Changes of files that are in progress, and who has to wait for them or do without.
#include "nfs/state/file_changes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <optional>
#include <thread>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

class Nfs4FileChanges : public ::testing::Test {
 protected:
  OpenResult open_denying(bool reclaim = false) {
    return world.files.open({file, bytes_of("owner"), kShareRead, kShareWrite, reclaim}, a.life);
  }
  OpenResult open_having_stopped(bool truncates = false) {
    return world.files.open(
        {file, bytes_of("owner"), kShareRead, kShareWrite, false, truncates, true}, a.life);
  }
  // Until the test ends.
  Wait keep(Waiting waiting) {
    places.push_back(std::move(waiting.place));
    return waiting.how;
  }
  Wait wait_for_changes() {
    return keep(world.files.wait_for_changes(file, [this] { ++ended; }));
  }
  Wait wait() {
    return keep(world.files.wait(file, [this] { ++resumed; }));
  }
  StateidResult delegate(bool reclaim = false) {
    return world.files.delegate({file, DelegationType::Read, {}, 0, reclaim}, a.life);
  }

  World world;
  int ended = 0, resumed = 0;  // waiters that were called
  const FileKey file = World::file(1);
  const testing::Client a = world.client("a"), b = world.client("b");
  std::vector<std::unique_ptr<WaitPlace>> places;
};

TEST_F(Nfs4FileChanges, defer_who_denies_writing_until_they_end) {
  Permit first = world.files.access(file, Touch::Write);
  Permit second = world.files.access(file, Touch::Size);
  EXPECT_EQ(open_denying().verdict.status, Status::Delay);
  first.change.end();
  EXPECT_EQ(open_denying().verdict.status, Status::Delay);
  FileChange other = second.change.another();
  second.change.end();
  EXPECT_EQ(open_denying().verdict.status, Status::Delay) << "somebody else goes on with it";
  other.end();
  EXPECT_TRUE(open_denying().verdict.granted());
}

TEST_F(Nfs4FileChanges, keep_a_file_from_being_delegated_until_they_end) {
  for (const Touch touch : {Touch::Write, Touch::Size, Touch::Attributes}) {
    std::optional<Permit> permit = world.files.access(file, touch);
    EXPECT_EQ(delegate().status, Status::Denied);
    permit.reset();
    const StateidResult made = delegate();
    EXPECT_EQ(made.status, Status::Ok);
    world.files.return_delegation(file, made.stateid, *a.life);
  }
}

TEST_F(Nfs4FileChanges, do_not_include_changes_of_attributes) {
  const Permit permit = world.files.access(file, Touch::Attributes);
  EXPECT_TRUE(open_denying().verdict.granted());
}

TEST_F(Nfs4FileChanges, do_not_begin_while_they_are_stopped) {
  const Stateid opened = world.open(b, 1, kShareBoth).stateid;
  std::optional<StoppedChanges> stopped = world.files.stop_changes(file);
  using Kind = Verdict::Kind;
  EXPECT_EQ(world.files.access(file, Touch::Write).kind, Kind::Recall);
  EXPECT_EQ(world.files.access(file, Touch::Size).kind, Kind::Recall);
  EXPECT_EQ(world.files.check(file, opened, *b.life, Touch::Write).kind, Kind::Recall);
  const OpenArgs truncating{file, bytes_of("other"), kShareRead, 0, false, true};
  EXPECT_EQ(world.files.open(truncating, b.life).verdict.kind, Kind::Recall);
  for (const Touch touch : {Touch::Read, Touch::Look, Touch::Attributes, Touch::Unlink})
    EXPECT_TRUE(world.files.access(file, touch).granted());
  EXPECT_TRUE(world.files.access(World::file(2), Touch::Write).granted());
  stopped.reset();
  EXPECT_TRUE(world.files.access(file, Touch::Write).granted());
}

TEST_F(Nfs4FileChanges, keep_their_file_from_being_delegated_while_they_are_stopped) {
  std::optional<StoppedChanges> stopped = world.files.stop_changes(file);
  EXPECT_EQ(delegate().status, Status::Denied) << "somebody else is to get a share reservation";
  stopped.reset();
  EXPECT_EQ(delegate().status, Status::Ok);
}

TEST_F(Nfs4FileChanges, end_before_who_has_stopped_them_is_told) {
  Permit first = world.files.access(file, Touch::Write);
  Permit second = world.files.access(file, Touch::Size);
  EXPECT_TRUE(open_denying().changing);
  const StoppedChanges stopped = world.files.stop_changes(file);
  EXPECT_EQ(wait_for_changes(), Wait::Begun);
  first.change.end();
  EXPECT_EQ(ended, 0);
  FileChange other = second.change.another();
  second.change.end();
  EXPECT_EQ(ended, 0) << "somebody else goes on with it";
  other.end();
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(open_having_stopped(true).verdict.granted());
  EXPECT_EQ(ended, 1) << "once";
}

TEST_F(Nfs4FileChanges, are_not_waited_for_when_they_ended_first) {
  std::optional<Permit> permit = world.files.access(file, Touch::Write);
  EXPECT_TRUE(open_denying().changing);
  permit.reset();
  const StoppedChanges stopped = world.files.stop_changes(file);
  EXPECT_EQ(wait_for_changes(), Wait::NoNeed);
  EXPECT_TRUE(open_having_stopped().verdict.granted());
}

TEST_F(Nfs4FileChanges, wait_until_nobody_stops_them) {
  std::optional<StoppedChanges> first = world.files.stop_changes(file);
  std::optional<StoppedChanges> second = world.files.stop_changes(file);
  EXPECT_EQ(wait(), Wait::Begun);
  first.reset();
  EXPECT_EQ(resumed, 0);
  EXPECT_EQ(world.files.access(file, Touch::Write).kind, Verdict::Kind::Recall);
  second.reset();
  EXPECT_EQ(resumed, 1);
  EXPECT_EQ(wait(), Wait::NoNeed);
}

TEST_F(Nfs4FileChanges, are_waited_for_by_nobody_who_gave_up) {
  std::optional<Permit> permit = world.files.access(file, Touch::Write);
  std::optional<StoppedChanges> stopped = world.files.stop_changes(file);
  for (std::uint32_t n = 0; n < 3 * StateLimits{}.waiting; ++n) {
    ASSERT_EQ(n % 2 == 0 ? wait() : wait_for_changes(), Wait::Begun);
    places.clear();
  }
  EXPECT_EQ(wait(), Wait::Begun);
  EXPECT_EQ(wait_for_changes(), Wait::Begun);
  permit.reset();
  EXPECT_EQ(ended, 1);
  stopped.reset();
  EXPECT_EQ(resumed, 1);
}

TEST_F(Nfs4FileChanges, are_waited_for_by_so_many_only_and_by_nobody_once_they_go_on) {
  const Permit permit = world.files.access(file, Touch::Write);
  for (int i = 0; i < 2; ++i) {
    const StoppedChanges stopped = world.files.stop_changes(file);
    for (std::uint32_t n = 0; n < StateLimits{}.waiting; ++n)
      ASSERT_EQ(n % 2 == 0 ? wait() : wait_for_changes(), Wait::Begun);
    EXPECT_EQ(wait(), Wait::TooMany);
    EXPECT_EQ(wait_for_changes(), Wait::TooMany);
  }
  EXPECT_EQ(resumed, static_cast<int>(StateLimits{}.waiting));
}

// A waiter for whose call there is no memory has a timer of its own; the others are called.
TEST_F(Nfs4FileChanges, end_whether_or_not_who_waits_finds_memory) {
  Permit permit = world.files.access(file, Touch::Write);
  std::optional<StoppedChanges> stopped = world.files.stop_changes(file);
  for (int i = 0; i < 2; ++i) {
    keep(world.files.wait_for_changes(file, [] { throw std::bad_alloc(); }));
    keep(world.files.wait(file, [] { throw std::bad_alloc(); }));
    wait_for_changes();
    wait();
  }
  permit.change.end();
  EXPECT_EQ(ended, 2);
  stopped.reset();
  EXPECT_EQ(resumed, 2);
}

TEST_F(Nfs4FileChanges, delay_a_denying_open_also_when_they_came_by_a_stateid) {
  const Stateid opened = world.open(b, 1, kShareWrite).stateid;
  const Permit permit = world.files.check(file, opened, *b.life, Touch::Write);
  world.files.close(file, opened, *b.life);
  EXPECT_EQ(open_denying().verdict.status, Status::Delay) << "what was open is no longer";
}

TEST_F(Nfs4FileChanges, are_not_what_is_refused_or_only_looks) {
  const Stateid denying = open_denying().stateid;
  const Permit refused = world.files.access(file, Touch::Write);
  EXPECT_FALSE(refused.granted());
  world.files.close(file, denying, *a.life);
  const Permit read = world.files.access(file, Touch::Read);
  const Permit looked = world.files.access(file, Touch::Look);
  EXPECT_EQ(delegate().status, Status::Ok);
  EXPECT_TRUE(open_denying().verdict.granted());
}

TEST_F(Nfs4FileChanges, end_with_the_result_of_an_OPEN_that_truncates) {
  OpenArgs truncating{file, bytes_of("owner"), kShareRead, 0, false, true};
  {
    const OpenResult opened = world.files.open(truncating, b.life);
    ASSERT_TRUE(opened.verdict.granted());
    EXPECT_EQ(delegate().status, Status::Denied);
    EXPECT_EQ(open_denying().verdict.status, Status::Delay);
  }
  EXPECT_TRUE(open_denying().verdict.granted());
}

// Versions 2 and 3 write then, whatever is to be reclaimed.
TEST_F(Nfs4FileChanges, do_not_defer_reclaims) {
  a.life->may_reclaim = true;
  world.grace->begin(world.now + std::chrono::seconds(90), true);
  const Permit permit = world.files.access(file, Touch::Write);
  EXPECT_TRUE(open_denying(true).verdict.granted());
  EXPECT_EQ(delegate(true).status, Status::Ok);
}

// Each waiter is called, whichever of the two comes first.
TEST_F(Nfs4FileChanges, never_wait_in_vain_nor_do_those_who_stop_them) {
  constexpr int kTurns = 2000;
  std::atomic<bool> over{false};
  std::atomic<int> resumed_ones{0}, ended_ones{0};
  const auto note = [](std::atomic<int>& told) {
    return [&told] {
      ++told;
      told.notify_one();
    };
  };
  std::thread changer([&] {
    while (!over) {
      const int before = resumed_ones;
      if (world.files.access(file, Touch::Write).granted()) continue;
      const Waiting waiting = world.files.wait(file, note(resumed_ones));
      if (waiting.how == Wait::Begun) resumed_ones.wait(before);
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    const StoppedChanges stopped = world.files.stop_changes(file);
    const int before = ended_ones;
    const Waiting waiting = world.files.wait_for_changes(file, note(ended_ones));
    if (waiting.how == Wait::Begun) ended_ones.wait(before);
    const OpenResult opened = open_having_stopped();
    EXPECT_TRUE(opened.verdict.granted());
    world.files.close(file, opened.stateid, *a.life);
  }
  over = true;
  changer.join();
}

// Of two who come at the same time, at least one sees the other.
TEST_F(Nfs4FileChanges, are_never_beside_who_denies_them) {
  std::atomic<bool> changing{false}, denied{false}, over{false};
  std::atomic<int> conflicts{0};
  std::thread changer([&] {
    while (!over) {
      const Permit permit = world.files.access(file, Touch::Write);
      std::this_thread::yield();
      if (!permit.granted()) continue;
      changing = true;
      conflicts += denied;
      changing = false;
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const OpenResult opened = open_denying();
    if (!opened.verdict.granted()) continue;
    denied = true;
    conflicts += changing;
    std::this_thread::yield();
    denied = false;
    world.files.close(file, opened.stateid, *a.life);
  }
  over = true;
  changer.join();
  EXPECT_EQ(conflicts, 0);
  EXPECT_FALSE(world.files.guarded());
}

}  // namespace
}  // namespace stag::nfs::state
