// SEQUENCE, and the checks of stateids and shares, take nothing from the heap; an open takes
// little; and a client that is told that memory ran out holds what it held.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "testing/failing_new.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

TEST(Nfs4StateMemory, a_request_in_steady_state_allocates_nothing) {
  World world;
  const testing::Client client = world.client("client");
  const Stateid stateid = world.open(client, 1, kShareBoth, kShareWrite).stateid;
  const Stateid lock = world.lock(client, 1, stateid, {0, 9}, true).stateid;
  const FileKey file = World::file(1), other = World::file(2);
  const ReplyPtr reply = std::make_shared<testing::StoredReply>(1);
  stag::testing::allocations_until_failure = 1;
  int good = 0;
  for (SequenceId number = 1; number <= 1000; ++number) {
    const Sequenced running = world.sequence(client.session, 5, number);
    good += running.kind == Sequenced::Kind::Run;
    good += world.files.check(file, stateid, *client.life, Touch::Read).granted();
    good += world.files.check(file, lock, *client.life, Touch::Write).granted();
    good += world.files.access(other, Touch::Write).granted();
    good += !world.files.access(file, Touch::Write).granted();
    world.finish(running, reply);
    good += world.sequence(client.session, 5, number).kind == Sequenced::Kind::Replay;
  }
  EXPECT_EQ(std::exchange(stag::testing::allocations_until_failure, 0), 1u);
  EXPECT_EQ(good, 6000);
}

TEST(Nfs4StateMemory, an_open_of_a_file_takes_a_KiB_at_most_with_its_owner) {
  World world;
  // More than one client may have.
  const testing::Client clients[] = {world.client("one"), world.client("another")};
  const std::string owner(64, 'o');
  constexpr std::uint64_t kOpens = 100'000;
  const std::size_t before = ::mallinfo2().uordblks;
  for (std::uint64_t i = 0; i < kOpens; ++i)
    ASSERT_TRUE(world.open(clients[i % 2], i, kShareBoth, 0, owner).verdict.granted());
  EXPECT_LE((::mallinfo2().uordblks - before) / kOpens, 1024u);
  RecordProperty("bytes", static_cast<int>((::mallinfo2().uordblks - before) / kOpens));
}

class Nfs4LockMemory : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kMost = 100;  // more than any of the operations here allocates

  // Calls `operation` with each of its allocations failing once, and then to its end. After each
  // failure `unchanged` is to be so.
  template <class Operation, class Check>
  void fail_each(Operation operation, Check unchanged) {
    for (std::size_t n = 1; n < kMost; ++n) {
      stag::testing::allocations_until_failure = n;
      try {
        operation();
        EXPECT_GT(n, 1u);
        stag::testing::allocations_until_failure = 0;
        return;
      } catch (const std::bad_alloc&) {
      }
      unchanged(n);
    }
    FAIL() << "more than " << kMost << " allocations";
  }
  Status lock(const Range& range, bool exclusive = true) {
    const LockResult result = world.lock(a, 1, open_a, range, exclusive);
    if (result.verdict.granted()) stateid = result.stateid;
    return result.verdict.status;
  }
  Status unlock(const Range& range) {
    const StateidResult result = world.files.unlock(file, stateid, range, *a.life);
    if (result.status == Status::Ok) stateid = result.stateid;
    return result.status;
  }
  // What another client is told by LOCKT.
  Status test(const Range& range, bool exclusive = true) {
    return world.files.test_lock(file, range, exclusive, bytes_of("other"), *b.life).verdict.status;
  }

  World world;
  const testing::Client a = world.client("a"), b = world.client("b");
  const FileKey file = World::file(1);
  const Stateid open_a = world.open(a, 1).stateid;
  Stateid stateid{};
};

TEST_F(Nfs4LockMemory, running_out_in_LOCKU_leaves_all_ranges_locked) {
  ASSERT_EQ(lock({0, 99}), Status::Ok);
  fail_each(
      [&] {
        ASSERT_EQ(unlock({40, 49}), Status::Ok);
      },
      [&](std::size_t n) {
        EXPECT_EQ(test({0, 39}), Status::Denied) << n;
        EXPECT_EQ(test({45, 45}), Status::Denied) << n;
        EXPECT_EQ(test({99, 99}), Status::Denied) << n;
        EXPECT_EQ(a.life->states.load(), 3u) << n;
      });
  EXPECT_EQ(stateid.seqid, 2u) << "what failed did not count";
  EXPECT_EQ(test({40, 49}), Status::Ok);
  EXPECT_EQ(test({39, 39}), Status::Denied);
  EXPECT_EQ(test({50, 50}), Status::Denied);
}

TEST_F(Nfs4LockMemory, running_out_in_an_upgrade_leaves_the_lock_as_it_was) {
  ASSERT_EQ(lock({0, 99}, false), Status::Ok);
  fail_each(
      [&] {
        ASSERT_EQ(lock({40, 49}, true), Status::Ok);
      },
      [&](std::size_t n) {
        EXPECT_EQ(test({0, 99}, false), Status::Ok) << n;
        EXPECT_EQ(test({45, 45}, true), Status::Denied) << n;
      });
  EXPECT_EQ(stateid.seqid, 2u);
  EXPECT_EQ(test({40, 40}, false), Status::Denied);
  EXPECT_EQ(test({0, 39}, false), Status::Ok);
  EXPECT_EQ(test({0, 39}, true), Status::Denied);
}

TEST_F(Nfs4LockMemory, running_out_in_the_first_LOCK_of_an_owner_leaves_nothing) {
  fail_each(
      [&] {
        ASSERT_EQ(lock({0, 99}), Status::Ok);
      },
      [&](std::size_t n) {
        EXPECT_EQ(test({0, 99}), Status::Ok) << n;
        EXPECT_EQ(a.life->states.load(), 1u) << n;
      });
  EXPECT_EQ(stateid.seqid, 1u);
  EXPECT_EQ(test({99, 99}), Status::Denied);
}

// So many that they stand in several blocks, which are split.
TEST_F(Nfs4LockMemory, running_out_among_many_ranges_leaves_all_of_them) {
  constexpr std::uint64_t kRanges = 300;
  for (std::uint64_t i = 0; i < kRanges; ++i) {
    fail_each(
        [&] {
          ASSERT_EQ(lock({10 * i, 10 * i + 4}), Status::Ok);
        },
        [&](std::size_t n) {
          EXPECT_EQ(test({10 * i, 10 * i + 4}), Status::Ok) << n;
        });
    fail_each(
        [&] {
          ASSERT_EQ(unlock({10 * i + 2, 10 * i + 2}), Status::Ok);
        },
        [&](std::size_t n) {
          EXPECT_EQ(test({10 * i + 2, 10 * i + 2}), Status::Denied) << n;
        });
  }
  for (std::uint64_t i = 0; i < kRanges; ++i)
    for (const std::uint64_t byte : {0, 1, 2, 3, 4, 5})
      EXPECT_EQ(test({10 * i + byte, 10 * i + byte}),
                byte == 2 || byte == 5 ? Status::Ok : Status::Denied);
  EXPECT_EQ(unlock({0, Range::kEnd}), Status::Ok);
  EXPECT_EQ(a.life->states.load(), 2u);
}

class Nfs4EndMemory : public ::testing::Test {
 protected:
  // All allocations fail while it runs. Whether it needs none.
  template <class Work>
  static bool goes_without_memory(Work work) {
    stag::testing::failure_lasts = true;
    const bool failed = fails(1, work);
    stag::testing::failure_lasts = false;
    return !failed;
  }
  // Whether the n-th allocation of this was there to fail.
  template <class Work>
  static bool fails(std::size_t n, Work work) {
    stag::testing::allocations_until_failure = n;
    bool threw = false;
    try {
      work();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    return std::exchange(stag::testing::allocations_until_failure, 0) == 0 || threw;
  }
  void hold(const testing::Client& client, std::uint64_t first, std::uint64_t files) {
    for (std::uint64_t i = first; i < first + files; ++i)
      ASSERT_TRUE(
          world.lock(client, i, world.open(client, i).stateid, {0, 9}, true).verdict.granted());
  }
  static constexpr std::uint64_t kFiles = 300;

  World world;
};

TEST_F(Nfs4EndMemory, is_not_needed_for_what_a_client_held_to_be_free) {
  const testing::Client client = world.client("a");
  hold(client, 0, kFiles);
  const LifePtr ended = world.clients.end(client.id, false);
  EXPECT_TRUE(goes_without_memory([&] { world.files.release(*ended); }));
  EXPECT_EQ(world.files.states(), 0u);
  EXPECT_EQ(ended->account->states.load(), 0u);
}

TEST_F(Nfs4EndMemory, running_out_in_a_listener_has_it_told_again) {
  struct Mirror final : RangeMirror {
    void freed(const FileKey* file, const Range&) override {
      ++(file == nullptr ? of_all : of_one);
      if (full) throw std::bad_alloc();
    }
    bool mirrors(const FileKey&) const override { return true; }
    bool full = true;
    int of_one = 0, of_all = 0;
  } mirror;
  const testing::Client client = world.client("a");
  hold(client, 0, kFiles);
  world.files.mirror_to(&mirror);
  world.files.release(*world.clients.end(client.id, false));
  EXPECT_EQ(world.files.states(), 0u);
  EXPECT_EQ(mirror.of_one, static_cast<int>(kFiles));
  world.files.tell_again();
  EXPECT_EQ(mirror.of_all, 1);
  EXPECT_TRUE(world.files.untold());
  mirror.full = false;
  world.files.tell_again();
  EXPECT_EQ(mirror.of_all, 2);
  EXPECT_FALSE(world.files.untold());
  world.files.tell_again();
  EXPECT_EQ(mirror.of_all, 2);
  world.files.mirror_to(nullptr);
}

TEST_F(Nfs4EndMemory, running_out_in_expire_forgets_no_client) {
  constexpr std::size_t kClients = 12;
  bool failed = true;
  for (std::size_t n = 1; failed; ++n) {
    std::vector<LifePtr> holders, others;
    for (std::size_t i = 0; i < kClients; ++i) {
      const std::string name = std::to_string(n) + " " + std::to_string(i);
      holders.push_back(world.client("holds " + name).life);
      hold({holders.back()->clientid, {}, holders.back()}, n * kClients + i, 1);
      others.push_back(world.client("has nothing " + name, "192.0.2.2").life);
      world.exchange_id("unconfirmed " + name, 1, "root", false, "192.0.2.3");
    }
    world.now += world.lease + std::chrono::seconds(1);
    std::vector<LifePtr> ended, lapsed;
    const auto expire = [&](std::size_t failing) {
      std::vector<LifePtr> just_now, over;
      const bool there = fails(failing, [&] { over = world.clients.expire(world.now, &just_now); });
      ended.insert(ended.end(), over.begin(), over.end());
      lapsed.insert(lapsed.end(), just_now.begin(), just_now.end());
      return there;
    };
    failed = expire(n);
    expire(0);
    EXPECT_TRUE(std::is_permutation(lapsed.begin(), lapsed.end(), holders.begin(), holders.end()))
        << n;
    EXPECT_TRUE(std::is_permutation(ended.begin(), ended.end(), others.begin(), others.end())) << n;
    EXPECT_EQ(others.front()->account->clients.load(), 0u) << n;
    EXPECT_EQ(world.clients.list(world.now).size(), kClients) << n;
    for (const LifePtr& life : holders)
      world.files.release(*world.clients.end(life->clientid, true));
    ASSERT_LT(n, 1000u);
  }
}

TEST_F(Nfs4EndMemory, running_out_in_EXCHANGE_ID_ends_no_client_that_is_not_returned) {
  bool failed = true;
  for (std::size_t n = 1; failed; ++n) {
    const std::string owner = "owner " + std::to_string(n);
    const testing::Client client = world.client(owner);
    world.open(client, n);
    world.now += world.lease + std::chrono::seconds(1);
    world.clients.expire(world.now);
    LifePtr ended;
    failed = fails(n, [&] { ended = world.exchange_id(owner, 2, "somebody else").ended; });
    EXPECT_EQ(client.life->ended(), ended != nullptr) << n;
    world.files.release(*client.life);
    ASSERT_LT(n, 1000u);
  }
}

TEST_F(Nfs4EndMemory, running_out_in_SETCLIENTID_ends_no_client_that_is_not_returned) {
  bool failed = true;
  for (std::size_t n = 1; failed; ++n) {
    const std::string id = "id " + std::to_string(n);
    const auto set = [&](std::string_view principal) {
      return world.clients.set_clientid({bytes_of(id), {}, bytes_of(principal), "192.0.2.1"},
                                        world.now);
    };
    const SetClientIdResult first = set("root");
    world.clients.confirm_clientid(first.clientid, first.confirm, bytes_of("root"), world.now);
    const LifePtr life = world.clients.life(first.clientid);
    ASSERT_NE(life, nullptr);
    world.now += world.lease + std::chrono::seconds(1);
    LifePtr ended;
    failed = fails(n, [&] { ended = set("somebody else").ended; });
    EXPECT_EQ(life->ended(), ended != nullptr) << n;
    ASSERT_LT(n, 1000u);
  }
}

// The first client of a shard is one for whom its tables grow.
TEST(Nfs4ClientMemory, running_out_while_the_tables_of_clients_grow_leaves_nothing_of_the_client) {
  bool failed = true;
  for (std::size_t n = 1; failed; ++n) {
    World world;
    stag::testing::allocations_until_failure = n;
    try {
      world.exchange_id("owner");
      failed = false;
    } catch (const std::bad_alloc&) {
    }
    stag::testing::allocations_until_failure = 0;
    EXPECT_NE(world.client("owner").life, nullptr);
    ASSERT_LT(n, 1000u);
  }
}

}  // namespace
}  // namespace stag::nfs::state
