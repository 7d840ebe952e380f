// What becomes of the locks of NLM when the server restarts: who is told, who may reclaim, and for
// whom the others wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/reason.h"
#include "nfs/lock/records.h"
#include "testing/held_executor.h"
#include "testing/nfs/lock_hosts.h"
#include "testing/nfs/lock_service_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::lock {
namespace {

TEST_F(Locks, are_only_reclaimed_in_the_grace_period_after_a_restart) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_EQ(lock(kA, 20, 1, false, true, true), NLM4_DENIED_GRACE_PERIOD) << "nothing to reclaim";
  restart();
  EXPECT_EQ(lock(kB, 0, 10), NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(test(kB, 0, 10).test_stat.stat, NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(lock(kA, 0, 10, true, true, true), NLM4_GRANTED);
  EXPECT_EQ(lock(kC, 5, 10, true, true, true), NLM4_DENIED) << "what was A's cannot have been C's";
  EXPECT_EQ(unlock(kA, 5, 5), NLM4_GRANTED);
  loop_.pass(46s);
  EXPECT_EQ(lock(kB, 5, 5), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 0, 10), NLM4_DENIED);
  EXPECT_EQ(lock(kC, 20, 1, false, true, true), NLM4_DENIED_GRACE_PERIOD) << "too late";
}

TEST_F(Locks, are_given_in_a_grace_period_to_no_host_that_had_none) {
  static std::string why;
  set_trace_sink([](Reason reason, std::string_view, std::string_view detail) {
    if (reason == Reason::ReclaimRefused) why = detail;
  });
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  restart();
  EXPECT_EQ(lock(kC, 0, 10, false, true, true), NLM4_DENIED);
  set_trace_sink(nullptr);
  EXPECT_NE(why.find("bytes 0 to 9, of a host that had none"), std::string::npos) << why;
  const nlm_shareargs share{object("s"), {"c", handle(), object("c"), fsm_DRW, fsa_RW}, true};
  EXPECT_EQ(ask<NLMPROC4_SHARE>(share).stat, NLM4_DENIED);
  EXPECT_FALSE(std::filesystem::exists(directory_.hosts() + "/" + kC)) << "nor the next time";
  EXPECT_EQ(lock(kA, 0, 10, false, true, true), NLM4_GRANTED);
}

// RFC 8881 8.4.3 names this one of version 4.
TEST_F(Locks, are_not_reclaimed_by_a_host_that_has_missed_a_grace_period_before) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  host(kA).up = false;
  restart();
  loop_.pass(50s);
  ASSERT_EQ(lock(kB, 0, 10), NLM4_GRANTED);
  ASSERT_EQ(unlock(kB, 0, 10), NLM4_GRANTED);
  loop_.pass(5min);
  for (std::size_t i = 0; i < 2; ++i) {
    restart();
    host(kA).up = true;
    loop_.pass(20s);
    EXPECT_EQ(host(kA).notified.size(), 1u + i) << "it learns of its loss";
    EXPECT_EQ(lock(kA, 0, 10, false, true, true), NLM4_DENIED) << i;
    EXPECT_EQ(lock(kA, 20, 10), NLM4_DENIED_GRACE_PERIOD) << "which is no lock anew";
  }
  loop_.pass(30s);
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  restart();
  EXPECT_EQ(lock(kA, 0, 10, false, true, true), NLM4_GRANTED);
}

TEST_F(Locks, are_nobody_elses_until_it_is_written_who_has_missed_the_grace_period) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  restart();
  const std::string there = directory_.path() + "/locks", away = directory_.path() + "/away";
  std::filesystem::rename(there, away);
  loop_.pass(50s);
  EXPECT_EQ(lock(kB, 0, 10), NLM4_DENIED_GRACE_PERIOD);
  std::filesystem::rename(away, there);
  loop_.pass(5s);
  EXPECT_EQ(lock(kB, 0, 10), NLM4_GRANTED);
}

Task<void> keep_status(rpc::Channel& channel, rpc::Credentials credentials, nlm4_lockargs args,
                       std::optional<nlm4_stats>& status) {
  rpc::Client client(channel, {}, credentials);
  const auto result = co_await client.call<NLMPROC4_LOCK>(args);
  if (result) status = result->stat.stat;
}

// The period is that of version 4, too.
TEST_F(Locks, are_reclaimed_that_a_store_has_held_since_before_the_end_of_the_grace_period) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  restart();
  const auto held = std::make_shared<vfs::testing::HeldSteps>();
  ExportOptions open;
  open.root_squash = false;
  const auto slow = std::make_shared<vfs::testing::SteppedStore>(store_, held);
  ASSERT_TRUE(nfs_.replace_exports({{"/data", slow, open}}).ok());
  from(kA);
  std::optional<nlm4_stats> status;
  detach(keep_status(*lock_channel_, credentials_,
                     {object("cookie"), false, true, lock_of(kA, 0, 10), true, state_}, status));
  loop_.drain();
  ASSERT_EQ(held->waiting.size(), 1u);
  loop_.pass(4min);
  held->release_all();
  loop_.drain();
  EXPECT_EQ(status, NLM4_GRANTED);
}

TEST_F(Locks, are_reclaimed_from_a_lost_server_by_hosts_that_know_its_name) {
  const StateDirectory lost;
  {
    const auto opened = Records::open(lost.path() + "/locks");
    STAG_CHECK(opened.ok() && (*opened)->keep_name("lost").ok() && (*opened)->add(kA).ok());
  }
  ASSERT_EQ(lock(kB, 20, 10), NLM4_GRANTED);
  const auto adopted = service_->adopt(lost.path(), loop_.now() + 45s);
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(*adopted, 1u);
  loop_.pass(1s);
  ASSERT_EQ(host(kA).notified.size(), 2u);
  EXPECT_EQ(host(kA).notified[0].mon_name, "server");
  EXPECT_EQ(host(kA).notified[1].mon_name, "lost");
  EXPECT_TRUE(host(kB).notified.empty()) << "its server is the same";
  EXPECT_EQ(lock(kC, 0, 10), NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(lock(kA, 0, 10, false, true, true), NLM4_GRANTED);
}

class HostsToBeTold : public LockServiceFixture {
 protected:
  bool was_called(const char* host) const {
    return std::ranges::find(peers_.called, host) != peers_.called.end();
  }
};

TEST_F(HostsToBeTold, have_their_time_where_they_are_adopted_while_others_are_given_up) {
  static constexpr const char* kC = "192.0.2.3";
  const StateDirectory lost;
  {
    const auto opened = Records::open(lost.path() + "/locks");
    STAG_CHECK(opened.ok() && (*opened)->keep_name("lost").ok());
    STAG_CHECK((*opened)->add(kA).ok() && (*opened)->add(kC).ok());
  }
  for (const char* const dead : {kA, kB}) lock(dead);
  crash();
  const auto worker = std::make_shared<stag::testing::HeldExecutor>(true);
  worker_ = worker;
  begin();
  loop_.pass(14min);
  worker->at_once = false;
  loop_.pass(2min);
  ASSERT_EQ(worker->held.size(), 2u) << "a turn of the upkeep, and the first host is given up";
  ASSERT_TRUE(service_->adopt(lost.path(), loop_.now() + 45s).ok());
  const auto given_up = reason_counters().of(Reason::NsmNotifyFailed);
  peers_.called = {};
  worker->at_once = true;
  worker->run_all();
  loop_.pass(1s);
  EXPECT_EQ(reason_counters().of(Reason::NsmNotifyFailed), given_up) << "kB has its time anew";
  EXPECT_TRUE(was_called(kA));
  EXPECT_TRUE(was_called(kC));
  loop_.pass(14min);
  EXPECT_TRUE(is_recorded(kA));
  EXPECT_TRUE(is_recorded(kC));
  loop_.pass(2min);
  for (const char* const dead : {kA, kB, kC}) EXPECT_FALSE(is_recorded(dead)) << dead;
}

TEST_F(HostsToBeTold, miss_no_grace_period_that_is_made_longer_while_its_end_is_written) {
  lock(kA);
  crash();
  const auto worker = std::make_shared<stag::testing::HeldExecutor>(true);
  worker_ = worker;
  begin();
  loop_.pass(40s);
  worker->at_once = false;
  loop_.pass(6s);
  ASSERT_EQ(worker->held.size(), 1u);
  EXPECT_EQ(lock(kB), NLM4_DENIED_GRACE_PERIOD);
  const StateDirectory lost;
  {
    const auto opened = Records::open(lost.path() + "/locks");
    STAG_CHECK(opened.ok() && (*opened)->keep_name("lost").ok() && (*opened)->add(kB).ok());
  }
  ASSERT_TRUE(service_->adopt(lost.path(), loop_.now() + 45s).ok());
  worker->at_once = true;
  worker->run_all();
  EXPECT_EQ(ask<NLMPROC4_LOCK>({object("c"), false, true, lock_of(kA), true, 0}), NLM4_GRANTED);
  loop_.pass(46s);
  EXPECT_EQ(ask<NLMPROC4_LOCK>({object("c"), false, true, lock_of(kB), true, 0}),
            NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(lock(kB), NLM4_DENIED) << "it is over";
}

TEST_F(Locks, need_no_grace_period_when_nobody_had_any) {
  restart();
  EXPECT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
}

TEST_F(Locks, are_reclaimed_when_the_status_monitor_tells_of_a_restart) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 20, 10), NLM4_GRANTED);
  EXPECT_TRUE(std::filesystem::exists(directory_.hosts() + "/" + kA));
  from(kC);
  const std::int32_t before = ask<SM_STAT>({"server"}).state;
  host(kB).up = false;
  restart();
  loop_.pass(10s);
  ASSERT_EQ(host(kA).notified.size(), 1u);
  EXPECT_EQ(host(kA).notified[0].mon_name, "server");
  const std::int32_t after = host(kA).notified[0].state;
  EXPECT_GT(after, before);
  EXPECT_EQ(after % 2, 1);
  EXPECT_EQ(ask<SM_STAT>({"server"}).state, after);
  host(kB).up = true;
  EXPECT_EQ(lock(kB, 20, 10, false, true, true), NLM4_GRANTED);
  loop_.pass(35s);
  EXPECT_EQ(host(kB).notified.size(), 1u);
  EXPECT_EQ(host(kA).notified.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(directory_.hosts() + "/" + kA)) << "it may reclaim";
  loop_.pass(3min);
  EXPECT_FALSE(std::filesystem::exists(directory_.hosts() + "/" + kA)) << "it had the time for it";
  EXPECT_TRUE(std::filesystem::exists(directory_.hosts() + "/" + kB)) << "it holds a lock again";
}

// Two restarts within the second or so that a host takes to reclaim.
TEST_F(Locks, are_reclaimed_from_the_next_server_by_a_host_that_this_one_has_only_told) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  service_->remove_idle_records();
  restart();
  loop_.pass(1s);
  ASSERT_EQ(host(kA).notified.size(), 1u);
  service_->remove_idle_records();
  restart();
  EXPECT_EQ(lock(kB, 0, 10), NLM4_DENIED_GRACE_PERIOD);
  loop_.pass(1s);
  ASSERT_EQ(host(kA).notified.size(), 2u);
  EXPECT_GT(host(kA).notified[1].state, host(kA).notified[0].state);
  EXPECT_EQ(lock(kA, 0, 10, false, true, true), NLM4_GRANTED);
}

TEST_F(Locks, are_no_longer_waited_for_after_a_grace_period_in_which_nobody_reclaimed_them) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  restart();
  loop_.pass(46s);
  ASSERT_EQ(lock(kB, 0, 10), NLM4_GRANTED);
  ASSERT_EQ(unlock(kB, 0, 10), NLM4_GRANTED);
  service_->remove_idle_records();
  EXPECT_FALSE(std::filesystem::exists(directory_.hosts() + "/" + kA));
}

TEST_F(Locks, are_reclaimed_in_time_after_a_restart_though_all_other_clients_are_dead) {
  for (int i = 0; i < 600; ++i)
    std::ofstream(directory_.hosts() + "/" + FakePeers::kDead + std::to_string(i));
  const std::string last = "203.0.113.1";  // they are told in this order
  ASSERT_EQ(lock(last, 0, 10), NLM4_GRANTED);
  restart();
  loop_.pass(40s);
  ASSERT_EQ(host(last).notified.size(), 1u);
  EXPECT_EQ(lock(last, 0, 10, false, true, true), NLM4_GRANTED);
}

TEST_F(Locks, are_forgotten_where_the_client_stays_silent_after_a_restart) {
  const auto before = reason_counters().of(Reason::NsmNotifyFailed);
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  host(kA).up = false;
  restart();
  loop_.pass(1h);
  EXPECT_EQ(reason_counters().of(Reason::NsmNotifyFailed), before + 1);
  EXPECT_FALSE(std::filesystem::exists(directory_.hosts() + "/" + kA));
}

TEST_F(Locks, are_lost_in_a_simulated_crash_that_only_this_host_may_ask_for) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  from(kB);
  const std::int32_t before = ask<SM_STAT>({"server"}).state;
  ask<SM_SIMU_CRASH>({});
  EXPECT_EQ(service_->size(), 1u);
  from("127.0.0.1", 40000);
  ask<SM_SIMU_CRASH>({});
  EXPECT_EQ(service_->size(), 1u) << "anybody on this host";
  from("127.0.0.1");
  ask<SM_SIMU_CRASH>({});
  EXPECT_EQ(service_->size(), 0u);
  EXPECT_EQ(ask<SM_STAT>({"server"}).state, before + 2);
  EXPECT_EQ(lock(kB, 0, 10), NLM4_DENIED_GRACE_PERIOD);
  loop_.pass(5s);
  EXPECT_EQ(host(kA).notified.size(), 1u);
  from("127.0.0.1");
  ask<SM_SIMU_CRASH>({});
  EXPECT_EQ(ask<SM_STAT>({"server"}).state, before + 2) << "once in a grace period";
  loop_.pass(46s);
  EXPECT_EQ(lock(kB, 0, 10), NLM4_GRANTED);
}

}  // namespace
}  // namespace stag::nfs::lock
