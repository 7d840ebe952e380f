// Grace periods that go on past their time, because the server itself is in the way of those who
// may reclaim (RFC 8881 8.4.2.1), and what an administrator sees of them, and does.
#include "base/executor.h"
#include "testing/nfs/nfs4_restart_fixture.h"
#include "testing/nfs/silent_names.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;
using Owners = std::vector<std::string>;

class Nfs4LateClaims : public Nfs4RestartServed {
 protected:
  ~Nfs4LateClaims() override {
    held_->release_all();
    if (!starts_.empty()) starts_.back()->loop_.drain();
  }
  // The store of the file takes no call.
  void hold_store_of(Nfs4Start& start) {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    const auto held = std::make_shared<vfs::testing::SteppedStore>(store_, held_);
    STAG_CHECK(exports.add(1, {"/data", held, open}).ok());
    start.context_.exports.replace(std::move(exports));
  }
  static Op reclaim_op(Nfs4Start& start) {
    v4::OPEN4args args = start.open_args("", v4::OPEN4_SHARE_ACCESS_BOTH, false);
    args.claim.claim = v4::CLAIM_PREVIOUS;
    args.claim.delegate_type() = v4::OPEN_DELEGATE_NONE;
    return op(v4::OP_OPEN, &Op::opopen, std::move(args));
  }
  static void pass(Nfs4Start& start, Duration time) {
    for (; time > 0s; time -= 1s) {
      start.loop_.pass(1s);
      start.status_flags();
    }
  }
  static Owners awaited(Nfs4Start& at, std::size_t most = 100) {
    Owners names;
    for (const AwaitedClient& each : at.nfs4_.administration().awaited(most, at.loop_.now()))
      names.push_back(each.owner.ownerid + (each.claimed  ? ", reclaims"
                                            : each.client ? ", is back"
                                                          : ""));
    return names;
  }

  const std::shared_ptr<SilentNames> names_ = std::make_shared<SilentNames>();
  const std::shared_ptr<vfs::testing::HeldSteps> held_ =
      std::make_shared<vfs::testing::HeldSteps>();
};

TEST_F(Nfs4LateClaims, keep_the_grace_period_open_while_no_name_service_answers) {
  Nfs4Start& second = restart_with_a_lock();
  names_->open_to_names(second.context_, store_);
  second.set_up_session("a client", false);
  for (Duration passed{}; passed < 2 * kGraceTime; passed += 15s) {
    EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_DELAY);
    pass(second, 15s);
  }
  names_->answers = true;
  static_cast<void>(second.reclaim(opened_.handle));
  const Nfs4Start::Opened again = second.reclaim(opened_.handle);
  ASSERT_EQ(again.status, v4::NFS4_OK);
  EXPECT_EQ(second.lock(again, true), v4::NFS4_OK);
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  EXPECT_FALSE(second.grace());
  second.set_up_session("another");
  const auto other = second.open(second.open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, false));
  EXPECT_EQ(second.lock(other, false), v4::NFS4ERR_DENIED);
}

TEST_F(Nfs4LateClaims, are_waited_for_no_longer_than_five_minutes_while_no_name_service_answers) {
  Nfs4Start& second = restart_with_a_lock();
  names_->open_to_names(second.context_, store_);
  second.set_up_session("a client", false);
  Duration passed{};
  for (; second.grace() && passed < 1h; passed += 1s) {
    EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_DELAY);
    pass(second, 1s);
  }
  EXPECT_EQ(passed, kGraceTime + 5min);
}

TEST_F(Nfs4LateClaims, keep_nobody_waiting_where_their_client_may_reclaim_nothing) {
  Nfs4Start& second = restart_with_a_lock();
  names_->open_to_names(second.context_, store_);
  second.set_up_session("another", false);
  for (Duration passed{}; passed < kGraceTime; passed += 15s) {
    EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_DELAY);
    pass(second, 15s);
  }
  EXPECT_FALSE(second.grace());
}

TEST_F(Nfs4LateClaims, are_granted_that_a_store_has_held_since_before_the_end) {
  Nfs4Start& second = restart_with_a_lock();
  hold_store_of(second);
  second.set_up_session("a client", false);
  std::optional<Nfs4Start::Res> results;
  pass(second, kGraceTime - 2s);
  second.begin(reclaim_op(second), results, {putfh(opened_.handle)});
  ASSERT_EQ(held_->waiting.size(), 1u);
  pass(second, 1min);
  EXPECT_FALSE(results);
  held_->release_all();
  second.loop_.drain();
  ASSERT_TRUE(results);
  EXPECT_EQ(results->status, v4::NFS4_OK);
}

TEST_F(Nfs4LateClaims, are_refused_that_a_store_holds_for_more_than_five_minutes_after_the_end) {
  Nfs4Start& second = restart_with_a_lock();
  hold_store_of(second);
  second.set_up_session("a client", false);
  std::optional<Nfs4Start::Res> results;
  second.begin(reclaim_op(second), results, {putfh(opened_.handle)});
  pass(second, kGraceTime + 5min - 1s);
  EXPECT_TRUE(second.grace());
  pass(second, 1s);
  EXPECT_FALSE(second.grace());
  held_->release_all();
  second.loop_.drain();
  ASSERT_TRUE(results);
  EXPECT_EQ(results->status, v4::NFS4ERR_NO_GRACE);
}

TEST_F(Nfs4LateClaims, are_awaited_until_their_client_says_that_it_is_done) {
  Nfs4Start& second = restart_of_two();
  EXPECT_EQ(awaited(second), (Owners{"a client", "another"}));
  second.set_up_session("a client", false);
  EXPECT_EQ(awaited(second), (Owners{"a client, is back", "another"}));
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4_OK);
  EXPECT_EQ(awaited(second), (Owners{"a client, reclaims", "another"}));
  EXPECT_EQ(second.nfs4_.administration().count_awaited(), 2u);
  EXPECT_EQ(awaited(second, 1), (Owners{"a client, reclaims"}));
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(awaited(second), (Owners{"another"}));
  second.set_up_session("another");
  EXPECT_EQ(awaited(second), Owners{});
  EXPECT_EQ(second.nfs4_.administration().count_awaited(), 0u);
}

TEST_F(Nfs4LateClaims, are_refused_once_an_administrator_has_ended_the_grace_period) {
  Nfs4Start& second = restart_of_two();
  second.set_up_session("a client", false);
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4_OK);
  EXPECT_TRUE(second.nfs4_.administration().end_grace(second.loop_.now()));
  EXPECT_FALSE(second.grace());
  EXPECT_EQ(second.reclaim(opened_.handle).status, v4::NFS4ERR_NO_GRACE);
  EXPECT_FALSE(second.nfs4_.administration().end_grace(second.loop_.now())) << "there is none";
  EXPECT_EQ(awaited(second), Owners{});
  EXPECT_EQ(second.reclaim_complete(), v4::NFS4_OK);
  EXPECT_EQ(second.create("new").status, v4::NFS4_OK);
}

}  // namespace
}  // namespace stag::nfs::nfs4
