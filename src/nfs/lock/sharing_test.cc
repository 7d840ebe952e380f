// NLM and NFSv4 on the same files: neither gives away what the other has.
#include "nfs/lock/sharing.h"

#include <gtest/gtest.h>

#include <thread>

#include "nfs/lock/lock_manager.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::lock {
namespace {

using namespace nlm;
using state::Status;
using state::Verdict;
using state::testing::World;

constexpr bool kShared = false, kExclusive = true;

class Nfs4AndNlm : public ::testing::Test {
 protected:
  Nfs4AndNlm() {
    gate_.guard(world_.files, [this](state::ClientId client) {
      const state::LifePtr ended = world_.clients.end(client, true);
      if (ended != nullptr) world_.files.release(*ended);
    });
    manager_.on_grant([this](const Client&, Ticket ticket) { granted_.push_back(ticket); });
    manager_.share_with(gate_);
    open_ = world_.open(v4_, 1).stateid;
  }

  static LockRequest request(Range range, bool exclusive, const char* host = "host",
                             std::uint64_t file = 1) {
    return {World::file(file), std::make_shared<Owner>(Owner{{"192.0.2.9", host}, "oh", 1}), range,
            exclusive};
  }
  nlm4_stats nlm_of(std::uint64_t file) {
    return manager_.lock({request({}, kExclusive, "host", file), false, false, 0, {}}, world_.now);
  }
  state::StateidResult delegate(std::uint64_t file) {
    return world_.files.delegate({World::file(file), state::DelegationType::Write, {}}, v4_.life);
  }
  void give_back(const state::Stateid& delegation, std::uint64_t file = 1) {
    EXPECT_EQ(world_.files.return_delegation(World::file(file), delegation, *v4_.life), Status::Ok);
  }
  nlm4_stats nlm(Range range, bool exclusive, bool block = false, const char* host = "host") {
    return manager_.lock({request(range, exclusive, host), block, false, 0, {}}, world_.now);
  }
  nlm4_stats nlm_unlock(Range range, const char* host = "host") {
    const LockRequest asked = request(range, true, host);
    return manager_.unlock(asked.file, *asked.owner, range);
  }
  Status v4(Range range, bool exclusive) {
    return world_.lock(v4_, 1, open_, range, exclusive).verdict.status;
  }
  nlm4_stats share(std::uint32_t access, std::uint32_t denied) {
    const LockRequest asked = request({}, true);
    return manager_.share(asked.file, {asked.owner, denied, access}, false, world_.now);
  }

  World world_;
  state::Gate gate_;
  LockManager manager_;
  std::vector<Ticket> granted_;
  const state::testing::Client v4_ = world_.client("client");
  state::Stateid open_;
};

TEST_F(Nfs4AndNlm, a_lock_of_version_4_keeps_NLM_out_and_TEST_tells_of_it) {
  ASSERT_EQ(v4({10, 19}, kExclusive), Status::Ok);
  EXPECT_EQ(nlm({15, 15}, kShared), NLM4_DENIED);
  EXPECT_EQ(nlm({20, 29}, kExclusive), NLM4_GRANTED);
  const auto tested = manager_.test(request({0, 100}, kExclusive), world_.now);
  EXPECT_EQ(tested.stat, NLM4_DENIED);
  ASSERT_TRUE(tested.holder.has_value());
  EXPECT_EQ(tested.holder->range, (Range{10, 19}));
  EXPECT_EQ(tested.holder->owner->handle, "locker");
}

TEST_F(Nfs4AndNlm, a_lock_of_NLM_keeps_version_4_out_and_LOCKT_tells_of_it) {
  ASSERT_EQ(nlm({10, 19}, kExclusive), NLM4_GRANTED);
  const state::LockResult denied = world_.lock(v4_, 1, open_, {15, 15}, kShared);
  EXPECT_EQ(denied.verdict.status, Status::Denied);
  ASSERT_TRUE(denied.conflict.has_value());
  EXPECT_EQ(denied.conflict->range, (Range{10, 19}));
  EXPECT_EQ(denied.conflict->lock_owner, "oh");
  EXPECT_EQ(world_.files.test_lock(World::file(1), {15, 15}, kShared, bytes_of("l"), *v4_.life)
                .verdict.status,
            Status::Denied);
  EXPECT_EQ(v4({20, 29}, kExclusive), Status::Ok);
  EXPECT_EQ(nlm_unlock({10, 19}), NLM4_GRANTED);
  EXPECT_EQ(v4({15, 15}, kExclusive), Status::Ok);
}

TEST_F(Nfs4AndNlm, shared_locks_go_together) {
  EXPECT_EQ(v4({10, 19}, kShared), Status::Ok);
  EXPECT_EQ(nlm({10, 19}, kShared), NLM4_GRANTED);
  EXPECT_EQ(nlm({10, 19}, kExclusive), NLM4_DENIED);
}

TEST_F(Nfs4AndNlm, files_are_told_apart) {
  EXPECT_EQ(nlm({10, 19}, kExclusive), NLM4_GRANTED);
  const state::Stateid other = world_.open(v4_, 2).stateid;
  EXPECT_TRUE(world_.lock(v4_, 2, other, {10, 19}, kExclusive).verdict.granted());
}

TEST_F(Nfs4AndNlm, a_waiting_NLM_lock_gets_the_range_that_version_4_unlocks) {
  const state::LockResult held = world_.lock(v4_, 1, open_, {10, 19}, kExclusive);
  EXPECT_EQ(nlm({10, 19}, kExclusive, true), NLM4_BLOCKED);
  EXPECT_TRUE(granted_.empty());
  world_.files.unlock(World::file(1), held.stateid, {10, 19}, *v4_.life);
  EXPECT_EQ(granted_.size(), 1u);
  EXPECT_EQ(v4({10, 19}, kExclusive), Status::Denied);
}

TEST_F(Nfs4AndNlm, a_waiting_NLM_lock_gets_the_range_that_version_4_downgrades) {
  const state::LockResult held = world_.lock(v4_, 1, open_, {10, 19}, kExclusive);
  EXPECT_EQ(nlm({10, 19}, kShared, true), NLM4_BLOCKED);
  const state::LockResult more = world_.lock_more(v4_, 1, held.stateid, {30, 39}, kShared);
  EXPECT_TRUE(more.verdict.granted());
  EXPECT_TRUE(granted_.empty());
  EXPECT_TRUE(world_.lock_more(v4_, 1, more.stateid, {10, 19}, kShared).verdict.granted());
  EXPECT_EQ(granted_.size(), 1u);
}

TEST_F(Nfs4AndNlm, a_waiting_NLM_lock_gets_the_range_that_a_CLOSE_frees) {
  ASSERT_EQ(v4({10, 19}, kExclusive), Status::Ok);
  EXPECT_EQ(nlm({10, 19}, kExclusive, true), NLM4_BLOCKED);
  world_.files.close(World::file(1), open_, *v4_.life);
  EXPECT_EQ(granted_.size(), 1u);
}

TEST_F(Nfs4AndNlm, a_waiting_NLM_lock_gets_the_range_of_a_client_that_ends) {
  ASSERT_EQ(v4({10, 19}, kExclusive), Status::Ok);
  EXPECT_EQ(nlm({10, 19}, kExclusive, true), NLM4_BLOCKED);
  world_.files.release(*world_.clients.end(v4_.id, false));
  EXPECT_EQ(granted_.size(), 1u);
}

TEST_F(Nfs4AndNlm, NLM_takes_what_a_lapsed_client_holds) {
  ASSERT_EQ(v4({10, 19}, kExclusive), Status::Ok);
  world_.now += 2 * World::lease;
  world_.clients.expire(world_.now);
  EXPECT_EQ(nlm({10, 19}, kExclusive), NLM4_GRANTED);
  EXPECT_TRUE(v4_.life->ended());
}

TEST_F(Nfs4AndNlm, a_waiting_NLM_lock_gets_the_range_of_a_client_that_lapses) {
  ASSERT_EQ(v4({10, 19}, kExclusive), Status::Ok);
  EXPECT_EQ(nlm({10, 19}, kExclusive, true), NLM4_BLOCKED);
  world_.now += 2 * World::lease;
  std::vector<state::LifePtr> lapsed;
  EXPECT_TRUE(world_.clients.expire(world_.now, &lapsed).empty());
  ASSERT_EQ(lapsed.size(), 1u);
  EXPECT_EQ(lapsed[0], v4_.life);
  world_.files.tell_of_lapse();
  EXPECT_EQ(granted_.size(), 1u);
  EXPECT_TRUE(v4_.life->ended());
}

TEST_F(Nfs4AndNlm, a_share_of_version_4_keeps_DOS_shares_out) {
  world_.files.close(World::file(1), open_, *v4_.life);
  ASSERT_TRUE(world_.open(v4_, 1, state::kShareRead, state::kShareWrite).verdict.granted());
  EXPECT_EQ(share(state::kShareWrite, 0), NLM4_DENIED);
  EXPECT_EQ(share(state::kShareRead, state::kShareRead), NLM4_DENIED) << "which somebody has open";
  EXPECT_EQ(share(state::kShareRead, 0), NLM4_GRANTED);
}

TEST_F(Nfs4AndNlm, a_DOS_share_takes_what_a_lapsed_client_denies) {
  world_.files.close(World::file(1), open_, *v4_.life);
  ASSERT_TRUE(world_.open(v4_, 1, state::kShareRead, state::kShareWrite).verdict.granted());
  world_.now += 2 * World::lease;
  world_.clients.expire(world_.now);
  EXPECT_EQ(share(state::kShareWrite, 0), NLM4_GRANTED);
  EXPECT_TRUE(v4_.life->ended());
}

TEST_F(Nfs4AndNlm, a_DOS_share_recalls_delegations_and_is_denied_until_they_are_given_back) {
  using state::DelegationType;
  std::vector<state::Recall> recalls;
  world_.files.on_recall([&](const state::Recall& recall) { recalls.push_back(recall); });
  world_.files.close(World::file(1), open_, *v4_.life);
  const auto delegate = [&](DelegationType type) {
    const auto made = world_.files.delegate({World::file(1), type, {}}, v4_.life);
    EXPECT_EQ(made.status, Status::Ok);
    return made.stateid;
  };
  const auto unshare = [&] {
    const LockRequest asked = request({}, true);
    manager_.unshare(asked.file, *asked.owner);
  };
  const state::Stateid read = delegate(DelegationType::Read);
  EXPECT_EQ(share(state::kShareRead, state::kShareWrite), NLM4_GRANTED) << "readers share";
  unshare();
  EXPECT_EQ(share(state::kShareRead, state::kShareRead), NLM4_DENIED);
  EXPECT_EQ(share(state::kShareWrite, 0), NLM4_DENIED);
  ASSERT_EQ(recalls.size(), 1u) << "it is asked once";
  EXPECT_EQ(recalls[0].stateid, read);
  world_.files.return_delegation(World::file(1), read, *v4_.life);
  EXPECT_EQ(share(state::kShareWrite, 0), NLM4_GRANTED);
  unshare();
  const state::Stateid write = delegate(DelegationType::Write);
  EXPECT_EQ(share(state::kShareRead, 0), NLM4_DENIED);
  EXPECT_EQ(recalls.size(), 2u);
  world_.files.return_delegation(World::file(1), write, *v4_.life);
  EXPECT_EQ(share(state::kShareRead, 0), NLM4_GRANTED);
}

TEST_F(Nfs4AndNlm, files_are_delegated_on_which_NLM_keeps_nothing) {
  ASSERT_EQ(nlm({10, 19}, kShared), NLM4_GRANTED);
  EXPECT_EQ(delegate(1).status, Status::Denied);
  EXPECT_EQ(delegate(2).status, Status::Ok);
  nlm_unlock({10, 19});
  ASSERT_EQ(share(state::kShareRead, 0), NLM4_GRANTED);
  ASSERT_EQ(nlm_of(3), NLM4_GRANTED);
  EXPECT_EQ(delegate(1).status, Status::Denied) << "a share is something, too";
  const LockRequest asked = request({}, true);
  manager_.unshare(asked.file, *asked.owner);
  const state::StateidResult made = delegate(1);
  ASSERT_EQ(made.status, Status::Ok);
  EXPECT_EQ(nlm({10, 19}, kExclusive), NLM4_DENIED);
  give_back(made.stateid);
  EXPECT_EQ(delegate(1).status, Status::Ok) << "nobody waits, and nothing is kept of a denial";
}

TEST_F(Nfs4AndNlm, a_request_that_waits_in_NLM_keeps_its_file_from_being_delegated) {
  const state::LockResult held = world_.lock(v4_, 1, open_, {10, 19}, kExclusive);
  ASSERT_EQ(nlm({10, 19}, kExclusive, true), NLM4_BLOCKED);
  EXPECT_EQ(delegate(1).status, Status::Denied);
  EXPECT_EQ(delegate(2).status, Status::Ok);
  world_.files.unlock(World::file(1), held.stateid, {10, 19}, *v4_.life);
  ASSERT_EQ(granted_.size(), 1u);
  EXPECT_EQ(delegate(1).status, Status::Denied) << "it has the lock";
  manager_.settle(granted_[0], false);
  EXPECT_EQ(delegate(1).status, Status::Ok);
}

TEST_F(Nfs4AndNlm, a_request_of_NLM_waits_until_a_delegation_is_given_back_and_no_other_one_is) {
  const state::StateidResult made = delegate(1);
  ASSERT_EQ(nlm({10, 19}, kExclusive, true), NLM4_BLOCKED);
  give_back(made.stateid);
  EXPECT_EQ(granted_.size(), 1u);
  EXPECT_EQ(delegate(1).status, Status::Denied);
}

TEST_F(Nfs4AndNlm, a_DOS_share_keeps_opens_of_version_4_out) {
  world_.files.close(World::file(1), open_, *v4_.life);
  ASSERT_EQ(share(state::kShareRead, state::kShareWrite), NLM4_GRANTED);
  EXPECT_EQ(world_.open(v4_, 1, state::kShareWrite).verdict.status, Status::ShareDenied);
  EXPECT_EQ(world_.open(v4_, 1, state::kShareRead, state::kShareRead).verdict.status,
            Status::ShareDenied);
  EXPECT_TRUE(world_.open(v4_, 1, state::kShareRead).verdict.granted());
  const LockRequest asked = request({}, true);
  manager_.unshare(asked.file, *asked.owner);
  EXPECT_TRUE(world_.open(v4_, 1, state::kShareWrite).verdict.granted());
}

TEST_F(Nfs4AndNlm, both_have_one_grace_period) {
  manager_.share_grace(world_.grace);
  world_.grace->begin(world_.now + std::chrono::seconds(90), false);
  EXPECT_EQ(nlm({10, 19}, kExclusive), NLM4_DENIED_GRACE_PERIOD);
  world_.grace->nobody_left(world_.now);
  EXPECT_EQ(nlm({10, 19}, kExclusive), NLM4_GRANTED);
  manager_.begin_grace(world_.now + std::chrono::seconds(90));
  EXPECT_EQ(v4({30, 39}, kExclusive), Status::Grace);
}

// If one of the two gets the byte, the other does not.
TEST_F(Nfs4AndNlm, never_lock_the_same_byte_at_once_from_two_threads) {
  constexpr int kRounds = 2000;
  std::atomic<int> holders{0};
  std::atomic<bool> both{false};
  const auto held = [&] {
    if (holders.fetch_add(1) != 0) both = true;
    holders.fetch_sub(1);
  };
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (nlm({5, 5}, kExclusive) != NLM4_GRANTED) continue;
      held();
      nlm_unlock({5, 5});
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const state::LockResult locked = world_.lock(v4_, 1, open_, {5, 5}, kExclusive);
    if (!locked.verdict.granted()) continue;
    held();
    world_.files.unlock(World::file(1), locked.stateid, {5, 5}, *v4_.life);
  }
  other.join();
  EXPECT_FALSE(both);
}

// A client that has a delegation keeps locks to itself. A lock elsewhere has version 4 look at
// those of the file; without it at none, most of the time.
TEST_F(Nfs4AndNlm, never_lock_and_delegate_the_same_file_at_once_from_two_threads) {
  constexpr int kRounds = 2000;
  for (const bool elsewhere : {false, true}) {
    if (elsewhere) {
      ASSERT_EQ(nlm_of(2), NLM4_GRANTED);
    }
    std::atomic<int> holders{0};
    std::atomic<bool> both{false};
    const auto held = [&] {
      if (holders.fetch_add(1) != 0) both = true;
      std::this_thread::yield();
      holders.fetch_sub(1);
    };
    std::thread other([&] {
      for (int i = 0; i < kRounds; ++i) {
        if (nlm({5, 5}, kExclusive) != NLM4_GRANTED) continue;
        held();
        nlm_unlock({5, 5});
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      const state::StateidResult made = delegate(1);
      if (made.status != Status::Ok) continue;
      held();
      give_back(made.stateid);
    }
    other.join();
    EXPECT_FALSE(both) << elsewhere;
  }
}

}  // namespace
}  // namespace stag::nfs::lock
