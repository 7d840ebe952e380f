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
      // Who changes the mode gives the file back.
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

}  // namespace
}  // namespace stag::nfs::client
