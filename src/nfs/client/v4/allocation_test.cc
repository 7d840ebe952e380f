// What the client of version 4 keeps where memory runs out.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/task.h"
#include "testing/failing_new.h"
#include "testing/nfs/client_harness.h"
#include "testing/nfs/delegated_world.h"
#include "testing/nfs/held_world.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/nfs/stray_sequence.h"

namespace stag::nfs::client {
namespace {

// A GETATTR takes no memory; results of a LOOKUP do.
constexpr const char* kDirectory = "a directory";

// Whether memory ran out before the answer was read.
bool lookup_with(testing::Nfs4ClientWorld& world, std::size_t allocations) {
  FileSystem& files = world.files();
  bool failed = false;
  try {
    testing::allocations_until_failure = allocations;
    failed = world.run(runs_out_of_memory(files.lookup(files.root(), kDirectory)));
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  testing::allocations_until_failure = 0;
  return failed;
}

TEST(Nfs4ClientMemory, running_out_takes_no_slot_of_the_session) {
  testing::Nfs4ClientWorld world(1);
  ASSERT_TRUE(world.run(world.files().mkdir(world.files().root(), kDirectory, {})).ok());
  int failures = 0;
  for (std::size_t allocations = 1; allocations < 40; ++allocations)
    for (std::uint32_t i = 0; i <= session::Slots::kMost; ++i)
      failures += lookup_with(world, allocations) ? 1 : 0;
  EXPECT_GT(failures, 0);
  EXPECT_TRUE(world.run(world.files().getattr(world.files().root())).ok());
}

// Runs `what`; the so manieth allocation fails, and all behind it if that `lasts`.
template <class F>
void with_memory_for(std::size_t allocations, bool lasts, F what) {
  testing::failure_lasts = lasts;
  testing::allocations_until_failure = allocations;
  try {
    what();
  } catch (const std::bad_alloc&) {
  }
  testing::allocations_until_failure = 0;
  testing::failure_lasts = false;
}

TEST(Nfs4ClientMemory, running_out_ends_no_renewal_of_the_lease) {
  for (const std::uint32_t minor : {0u, 1u}) {
    for (std::size_t allocations = 1; allocations < 40; ++allocations) {
      testing::HeldWorld world(minor);
      world.must(world.files().create_open(world.files().root(), "file", {.mode = 0644},
                                           CreateMode::Unchecked, testing::HeldWorld::kBoth));
      world.loop.drain();
      with_memory_for(allocations, false, [&] { world.loop.pass(std::chrono::seconds(31)); });
      EXPECT_GT(world.calls_of([&] { world.loop.pass(std::chrono::seconds(60)); }), 0)
          << "version 4." << minor << ", allocation " << allocations;
      world.run(world.closed());
    }
  }
}

TEST(Nfs4ClientMemory, running_out_keeps_no_delegation_from_being_given_back) {
  for (const std::uint32_t minor : {0u, 1u}) {
    for (std::size_t allocations = 1; allocations < 40; ++allocations) {
      testing::DelegatedWorld world(minor);
      world.begin();
      world.read_it();
      SetAttributes mode;
      mode.mode = 0600;
      // A client that changes the mode gives the file back.
      with_memory_for(allocations, true, [&] {
        world.run(runs_out_of_memory(world.files().setattr(world.file, mode)));
      });
      world.loop.pass(std::chrono::seconds(31));
      const TimePoint before = world.loop.now();
      EXPECT_TRUE(world.other_writes("new").ok());
      EXPECT_LT(world.loop.now() - before, std::chrono::seconds(60))
          << "version 4." << minor << ", allocation " << allocations << ": the server revokes it";
      world.run(world.closed());
      world.channel.server->nfs4.stop_callbacks();
    }
  }
}

// Coroutines begin with frames from the heap, and not with those of others that have ended.
void drop_kept_frames() {
  for (auto& list : stag::detail::frame_lists) {
    while (list.head != nullptr)
      stag::detail::drop_frame(std::exchange(list.head, list.head->next));
    list.count = 0;
  }
}

// A server that has revoked locks says so until they are freed, and one that does not reach this
// client until it does.
TEST(Nfs4ClientMemory, running_out_does_not_end_the_search_for_what_was_revoked) {
  for (std::size_t allocations = 1; allocations < 60; ++allocations) {
    testing::HeldWorld world(1);
    const File file =
        world
            .must(world.files().create_open(world.files().root(), "file", {.mode = 0644},
                                            CreateMode::Unchecked, testing::HeldWorld::kBoth))
            .file;
    world.must(world.files().lock(file, testing::HeldWorld::kMine, testing::HeldWorld::kTen));
    auto admin = world.channel.server->nfs4.administration();
    state::StateCursor at;
    state::StatePage page;
    std::vector<state::Stateid> locks;
    for (bool more = true; more;) {
      more = admin.states(at, {.client = {}, .type = state::StateInfo::Type::Lock}, page);
      for (const auto& listed : page.rows()) locks.push_back(listed.stateid);
    }
    for (const state::Stateid& stateid : locks) admin.revoke(stateid);
    ASSERT_GT(world.clients().front().info.revoked, 0u);
    drop_kept_frames();
    with_memory_for(allocations, true, [&] {
      world.run(runs_out_of_memory(world.files().getattr(world.files().root())));
    });
    // What was begun may have had an accident, too: it is begun again after a pause.
    world.loop.pass(std::chrono::seconds(60));
    EXPECT_EQ(world.clients().front().info.revoked, 0u) << "allocation " << allocations;
    world.run(world.closed());
  }
}

TEST(Nfs4ClientMemory, running_out_keeps_no_connection_from_being_bound_again) {
  for (std::size_t allocations = 1; allocations < 60; ++allocations) {
    testing::DelegatedWorld world(1);
    world.begin();
    world.read_it();
    world.connection->end();
    world.connect();
    drop_kept_frames();
    with_memory_for(allocations, true, [&] {
      world.run(runs_out_of_memory(world.files().getattr(world.files().root())));
    });
    // What is still on its way back at first is delegated the next time.
    for (int i = 0; i < 2; ++i) {
      world.loop.pass(std::chrono::seconds(60));
      world.must(world.files().getattr(world.files().root()));
      world.loop.drain();
      world.read_it();
    }
    EXPECT_EQ(world.delegations(), 1u) << "allocation " << allocations;
    world.run(world.closed());
    world.channel.server->nfs4.stop_callbacks();
  }
}

// What a restart has taken away is claimed all the same, each open once.
TEST(Nfs4ClientMemory, that_runs_out_keeps_no_open_from_being_claimed_again) {
  for (const std::uint32_t minor : {0u, 1u}) {
    std::size_t failures = 0;
    for (std::size_t allocations = 1; allocations < 60; allocations += 2) {
      testing::HeldWorld world(minor);
      world.channel.keep_records();
      world.channel.restart();
      for (const char* name : {"one", "two", "three"}) {
        const File file =
            world
                .must(world.files().create_open(world.files().root(), name, {.mode = 0644},
                                                CreateMode::Unchecked, testing::HeldWorld::kBoth))
                .file;
        world.must(world.files().lock(file, testing::HeldWorld::kMine, testing::HeldWorld::kTen));
      }
      world.channel.restart();
      drop_kept_frames();
      const std::size_t before = testing::failed_allocations;
      with_memory_for(allocations, false, [&] {
        world.run(runs_out_of_memory(world.files().getattr(world.files().root())));
      });
      failures += testing::failed_allocations - before;
      // In version 4.0 a restart is heard of by what needs state.
      world.loop.pass(std::chrono::seconds(31));
      world.must(world.files().getattr(world.files().root()));
      const auto held = world.clients().front().held;
      EXPECT_EQ(std::pair(held.opens, held.locks), std::pair(3u, 3u))
          << "version 4." << minor << ", allocation " << allocations;
      world.run(world.closed());
    }
    EXPECT_GT(failures, 0u);
  }
}

TEST(Nfs4ClientMemory, that_runs_out_keeps_no_session_that_was_left_from_being_destroyed) {
  std::size_t failures = 0;
  int sessions = 0;
  for (std::size_t allocations = 1; allocations < 100; ++allocations) {
    testing::HeldWorld world(1);
    const FileSystem files = world.files();
    const v4::sessionid4 left = world.protocol->session_id();
    testing::put_out_of_step(world.loop, world.channel, left);
    drop_kept_frames();
    const std::size_t before = testing::failed_allocations;
    with_memory_for(allocations, true,
                    [&] { world.run(runs_out_of_memory(world.files().getattr(files.root()))); });
    failures += testing::failed_allocations - before;
    world.must(world.files().getattr(files.root()));
    const bool is_left = world.protocol->session_id() != left;
    sessions += is_left ? 1 : 0;
    world.must(world.files().getattr(files.root()));
    world.loop.pass(std::chrono::seconds(60));
    if (is_left) {
      EXPECT_EQ(testing::stray_sequence(world.loop, world.channel, left, 1), v4::NFS4ERR_BADSESSION)
          << "allocation " << allocations;
    }
    world.run(world.closed());
  }
  EXPECT_GT(failures, 0u);
  EXPECT_GT(sessions, 10)
      << "a call whose answer there was no memory for costs its slot, not the session";
}

}  // namespace
}  // namespace stag::nfs::client
