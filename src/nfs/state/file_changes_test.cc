// Changes of files that are in progress, and who has to wait for them or do without.
#include "nfs/state/file_changes.h"

#include <gtest/gtest.h>

#include <atomic>
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
  StateidResult delegate(bool reclaim = false) {
    return world.files.delegate({file, DelegationType::Read, {}, 0, reclaim}, a.life);
  }

  World world;
  const FileKey file = World::file(1);
  const testing::Client a = world.client("a"), b = world.client("b");
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

TEST_F(Nfs4FileChanges, are_those_with_a_stateid_too) {
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

TEST_F(Nfs4FileChanges, of_an_OPEN_that_truncates_end_with_its_result) {
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
