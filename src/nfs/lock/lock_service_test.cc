// NLM and NSM as clients meet them: whole RPC messages in, calls back to fake hosts out.
#include "nfs/lock/lock_service.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/reason.h"
#include "endpoint/client.h"
#include "endpoint/listener.h"
#include "nfs/export/server_context.h"
#include "nfs/lock/lock_manager.h"
#include "testing/nfs/lock_hosts.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::lock {
namespace {

TEST_F(Locks, are_offered_over_TCP_in_every_version_with_the_status_monitor_beside_them) {
  PROVES("R8267-5.1-b", "R8267-5.1-c");
  auto listener =
      endpoint::listen(server_, {"127.0.0.1", 0}, {.transport = endpoint::Transport::Tcp});
  ASSERT_TRUE(listener.ok());
  endpoint::ConnectOptions options;
  options.connector.transport = endpoint::Transport::Tcp;
  auto client = endpoint::connect(listener->address(), options);
  ASSERT_TRUE(client.ok());
  for (const std::uint32_t version : {1u, 3u, 4u})
    EXPECT_TRUE(client->ping(100021, version).ok()) << version;
  EXPECT_FALSE(client->ping(100021, 2).ok());
  EXPECT_TRUE(client->ping(100024, 1).ok());
}

TEST_F(Locks, are_not_offered_over_RDMA) {
  channel_.origin().transport = rpc::TransportKind::Rdma;
  rpc::Client client(channel_);
  EXPECT_FALSE(loop_.run(client.ping(100021, 4))->ok());
  EXPECT_FALSE(loop_.run(client.ping(100024, 1))->ok());
}

TEST_F(Locks, keep_others_out_and_tell_them_who_it_is) {
  EXPECT_EQ(lock(kA, 10, 10), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 15, 1), NLM4_DENIED);
  EXPECT_EQ(lock(kB, 20, 0), NLM4_GRANTED);
  const nlm4_testres res = test(kC, 0, 12);
  EXPECT_EQ(res.cookie, object("t"));
  ASSERT_EQ(res.test_stat.stat, NLM4_DENIED);
  const nlm4_holder expected{true, 1, object(std::string("1@") + kA), 10, 10};
  EXPECT_EQ(res.test_stat.holder(), expected);
  EXPECT_EQ(test(kC, 25, 1).test_stat.holder().l_len, 0u) << "to the end of the file";
  EXPECT_EQ(test(kC, 0, 10).test_stat.stat, NLM4_GRANTED);
  EXPECT_EQ(unlock(kA, 0, 0), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 15, 1), NLM4_GRANTED);
}

TEST_F(Locks, exclude_locks_of_version_4_and_are_excluded_by_them) {
  state::testing::World world;
  nfs_.context().gate->guard(world.files, [](state::ClientId) {});
  restart();
  const auto client = world.client("client");
  const auto opened = nfs_.context().handles.open(file_.data.bytes());
  const auto exports = nfs_.exports();
  const state::FileKey key{exports->find(opened->export_id)->store, opened->object};
  const auto open = world.files.open({key, bytes_of("o"), state::kShareBoth, 0}, client.life);
  const state::LockArgs wanted{key, {0, 9}, true, false, true, open.stateid, bytes_of("l")};
  EXPECT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_EQ(world.files.lock(wanted, client.life).verdict.status, state::Status::Denied);
  EXPECT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_TRUE(world.files.lock(wanted, client.life).verdict.granted());
  EXPECT_EQ(lock(kA, 0, 10), NLM4_DENIED);
  nfs_.context().gate->open();
  restart();
}

TEST_F(Locks, are_one_set_for_every_handle_and_version_that_names_the_file) {
  EXPECT_EQ(lock(kA, 10, 10), NLM4_GRANTED);
  from(kB);
  const v3::nfs_fh3 odd = call<v3::NFSPROC3_LOOKUP>({{mounted("/odd"), "file"}}).resok().object;
  ASSERT_NE(odd, file_);
  nlm_lockargs args;
  args.exclusive = true;
  args.alock = {"b", Rope::copy_of(odd.data.bytes()), object("b"), 7, 0, 0xffffffff};
  EXPECT_EQ(ask<NLM_LOCK>(args).stat.stat, LCK_DENIED);
  args.alock.l_len = 10;
  EXPECT_EQ(ask<NLM3_LOCK>(args).stat.stat, LCK_GRANTED);
  EXPECT_EQ(lock(kC, 0, 1), NLM4_DENIED);
  const auto res = ask<NLM_TEST>({object("t"), false, {"c", handle(), object("c"), 1, 5, 100}});
  EXPECT_EQ(res.test_stat.stat, LCK_DENIED);
  EXPECT_EQ(ask<NLM_UNLOCK>({object("u"), args.alock}).stat.stat, LCK_GRANTED);
}

TEST_F(Locks, are_given_back_by_a_client_that_is_no_longer_let_in) {
  const nlm_shareargs share{object("s"), {"a", handle(), object("a"), fsm_DW, fsa_R}, false};
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 20, 10), NLM4_GRANTED);
  ASSERT_EQ(lock(kA, 20, 1, true), NLM4_BLOCKED);
  from(kA);
  ASSERT_EQ(ask<NLMPROC4_SHARE>(share).stat, NLM4_GRANTED);
  ASSERT_TRUE(nfs_.replace_exports({{"/data", store_, {}, {*make_client_rule(kB, {})}}}).ok());
  EXPECT_EQ(lock(kA, 40, 1), NLM4_STALE_FH);
  EXPECT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_EQ(cancel(kA, 20, 1), NLM4_GRANTED);
  EXPECT_EQ(ask<NLMPROC4_UNSHARE>(share).stat, NLM4_GRANTED);
  EXPECT_EQ(service_->size(), 1u) << "B's";
  ASSERT_TRUE(nfs_.replace_exports({}).ok());
  EXPECT_EQ(unlock(kB, 20, 5), NLM4_GRANTED) << "no export";
  ASSERT_TRUE(nfs_.replace_exports({{"/data", store_, {}}}).ok());
  EXPECT_EQ(lock(kA, 20, 5), NLM4_GRANTED);
  EXPECT_EQ(lock(kA, 25, 1), NLM4_DENIED) << "still B's";
}

TEST_F(Locks, stay_when_the_store_of_an_export_is_opened_again) {
  const auto opened = [&](std::uint64_t number) {
    vfs::memory::Options options;
    options.instance = number;
    return std::make_shared<vfs::MemoryFileSystem>(options);
  };
  ExportOptions open;
  open.root_squash = false;
  ASSERT_TRUE(nfs_.replace_exports({{"/again", opened(77), open}}).ok());
  file_ = create(mounted("/again"), "file");
  const v3::nfs_fh3 before = file_;
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  ASSERT_TRUE(nfs_.replace_exports({}).ok());
  ASSERT_TRUE(nfs_.replace_exports({{"/again", opened(77), open}}).ok());
  file_ = create(mounted("/again"), "file");
  ASSERT_EQ(file_, before);
  EXPECT_EQ(lock(kB, 0, 10), NLM4_DENIED);
  EXPECT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(Locks, tell_a_holder_beyond_32_bits_as_well_as_they_can) {
  EXPECT_EQ(lock(kA, std::uint64_t{1} << 40, 100), NLM4_GRANTED);
  from(kB);
  const auto res = ask<NLM3_TEST>({object("t"), true, {"b", handle(), object("b"), 1, 0, 0}});
  ASSERT_EQ(res.test_stat.stat, LCK_DENIED);
  EXPECT_EQ(res.test_stat.holder().l_offset, 0xffffffffu);
  EXPECT_EQ(res.test_stat.holder().l_len, 100u);
}

TEST_F(Locks, are_refused_with_the_reason_version_4_has_a_word_for) {
  const v3::nfs_fh3 good = file_;
  EXPECT_EQ(lock(kA, ~std::uint64_t{0} - 1, 3), NLM4_FBIG);
  file_ = mkdir(root(), "dir");
  EXPECT_EQ(lock(kA, 0, 1), NLM4_FAILED) << "a directory";
  file_ = create(root(), "gone");
  ASSERT_EQ(lock(kB, 0, 1), NLM4_GRANTED);
  call<v3::NFSPROC3_REMOVE>({{root(), "gone"}});
  EXPECT_EQ(lock(kA, 0, 1), NLM4_STALE_FH);
  EXPECT_EQ(unlock(kB, 0, 1), NLM4_GRANTED) << "what is gone can still be unlocked";
  EXPECT_EQ(service_->size(), 0u);
  ASSERT_TRUE(file_.data.assign(bytes_of("forged")));
  EXPECT_EQ(lock(kA, 0, 1), NLM4_STALE_FH);
  EXPECT_EQ(unlock(kA, 0, 1), NLM4_STALE_FH);
  EXPECT_EQ(test(kA, 0, 1).test_stat.stat, NLM4_STALE_FH);
  EXPECT_EQ(cancel(kA, 0, 1), NLM4_STALE_FH);
  nlm_lockargs old;
  old.alock.fh = handle();
  EXPECT_EQ(ask<NLM_LOCK>(old).stat.stat, LCK_DENIED_NOLOCKS) << "versions 1 and 3 have none";
  file_ = good;
  EXPECT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
}

TEST_F(Locks, are_for_those_who_may_read_the_file_or_own_it) {
  file_ = create(root(), "secret", 0600);
  as(1000, 1000);
  EXPECT_EQ(lock(kA, 0, 1), NLM4_FAILED);
  EXPECT_EQ(test(kA, 0, 1).test_stat.stat, NLM4_FAILED);
  as(0, 0);
  v3::SETATTR3args closed{file_, mode(0), {}};
  closed.new_attributes.uid.set_it = true;
  closed.new_attributes.uid.uid() = 1000;
  ASSERT_EQ(call<v3::NFSPROC3_SETATTR>(closed).status, v3::NFS3_OK);
  as(1000, 1000);
  EXPECT_EQ(lock(kA, 0, 1), NLM4_GRANTED) << "the owner, who opened it before it was closed";
  as_nobody_known();
  EXPECT_EQ(lock(kB, 5, 1), NLM4_FAILED);
}

TEST_F(Locks, are_waited_for_and_granted_by_a_call_in_the_clients_own_words) {
  ASSERT_EQ(lock(kA, 0, 100), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 50, 0, true), NLM4_BLOCKED);
  EXPECT_EQ(host(kB).attempts, 0);
  ASSERT_EQ(unlock(kA, 0, 100), NLM4_GRANTED);
  loop_.drain();
  ASSERT_EQ(host(kB).granted.size(), 1u);
  EXPECT_EQ(host(kB).granted[0].alock, lock_of(kB, 50, 0));
  EXPECT_TRUE(host(kB).granted[0].exclusive);
  EXPECT_EQ(lock(kA, 99, 1), NLM4_DENIED);
  loop_.pass(1h);
  EXPECT_EQ(host(kB).granted.size(), 1u) << "an acknowledged grant is not repeated";
}

TEST_F(Locks, are_granted_in_the_version_that_asked) {
  ASSERT_EQ(lock(kA, 0, 100), NLM4_GRANTED);
  from(kB);
  nlm_lockargs args{object("c"), true, false, {"b", handle(), object("b"), 9, 5, 6}, false, 0};
  ASSERT_EQ(ask<NLM3_LOCK>(args).stat.stat, LCK_BLOCKED);
  ASSERT_EQ(unlock(kA, 0, 0), NLM4_GRANTED);
  loop_.drain();
  ASSERT_EQ(host(kB).granted3.size(), 1u);
  EXPECT_EQ(host(kB).granted3[0].alock, args.alock);
  EXPECT_FALSE(host(kB).granted3[0].exclusive);
}

TEST_F(Locks, are_granted_from_the_address_that_the_client_called_each_at) {
  using Addresses = std::vector<std::string>;
  ASSERT_EQ(lock(kA, 0, 100), NLM4_GRANTED);
  for (std::uint64_t i = 0; i < 3; ++i) {
    channel_.origin().local.host = i == 1 ? "203.0.113.2" : "203.0.113.1";
    ASSERT_EQ(lock(kB, i, 1, true), NLM4_BLOCKED);
  }
  ASSERT_EQ(unlock(kA, 0, 0), NLM4_GRANTED);
  loop_.drain();
  EXPECT_EQ(host(kB).granted.size(), 3u);
  EXPECT_EQ(host(kB).called_from, (Addresses{"203.0.113.1", "203.0.113.2", "203.0.113.1"}));
  from(kC);
  ask<NLMPROC4_TEST_MSG>({object("t"), true, lock_of(kC, 0, 10)});
  loop_.drain();
  EXPECT_EQ(host(kC).called_from, Addresses{"203.0.113.1"}) << "as are results by message";
  restart();
  loop_.pass(1s);
  EXPECT_EQ(host(kA).called_from, Addresses{""}) << "nobody knows any more what it called";
}

TEST_F(Locks, go_to_the_next_when_the_first_in_the_queue_wants_them_no_more) {
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  ASSERT_EQ(lock(kC, 0, 1, true), NLM4_BLOCKED);
  host(kB).verdict = NLM4_DENIED;
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.drain();
  EXPECT_EQ(host(kB).granted.size(), 1u);
  ASSERT_EQ(host(kC).granted.size(), 1u);
  EXPECT_EQ(service_->size(), 1u);
}

TEST_F(Locks, are_offered_again_until_the_client_answers) {
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  host(kB).up = false;
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.pass(20s);
  EXPECT_GT(host(kB).attempts, 2);
  EXPECT_EQ(lock(kC, 0, 1), NLM4_DENIED) << "it is B's already";
  host(kB).up = true;
  host(kB).verdict = NLM4_DENIED_GRACE_PERIOD;
  loop_.pass(35s);
  EXPECT_FALSE(host(kB).granted.empty());
  host(kB).verdict = NLM4_GRANTED;
  loop_.pass(35s);
  EXPECT_EQ(service_->size(), 1u);
  const std::size_t offers = host(kB).granted.size();
  loop_.pass(1h);
  EXPECT_EQ(host(kB).granted.size(), offers);
}

TEST_F(Locks, are_offered_for_three_minutes_more_when_the_client_has_settled_another_one) {
  ASSERT_EQ(lock(kA, 0, 20), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  ASSERT_EQ(lock(kB, 10, 1, true), NLM4_BLOCKED);
  host(kB).verdict = NLM4_DENIED_GRACE_PERIOD;
  ASSERT_EQ(unlock(kA, 0, 20), NLM4_GRANTED);
  loop_.pass(2min);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_GRANTED) << "it asks again";
  loop_.pass(3min);
  EXPECT_EQ(lock(kC, 10, 1), NLM4_DENIED) << "it is B's still";
  loop_.pass(2min);
  EXPECT_EQ(lock(kC, 10, 1), NLM4_GRANTED);
  EXPECT_EQ(lock(kC, 0, 1), NLM4_DENIED);
}

TEST_F(Locks, are_taken_back_when_NLM_GRANTED_reaches_nobody) {
  const auto before = reason_counters().of(Reason::LockGrantUndelivered);
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  host(kB).up = false;
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.pass(1h);
  EXPECT_EQ(reason_counters().of(Reason::LockGrantUndelivered), before + 1);
  EXPECT_EQ(service_->size(), 0u);
}

// A host has vanished, and so many of its processes waited for byte 0.
class LocksBehindDeadHosts : public Locks {
 protected:
  void wait_as(const std::string& host, std::int32_t processes) {
    from(host);
    for (std::int32_t id = 0; id < processes; ++id) {
      const nlm4_lock one{"host-" + host, handle(), object("o"), id, 0, 1};
      ASSERT_EQ(ask<NLMPROC4_LOCK>({object("c"), true, true, one, false, 0}).stat.stat,
                NLM4_BLOCKED);
    }
  }
  const std::string dead_ = std::string(FakePeers::kDead) + "100.7";
};

TEST_F(LocksBehindDeadHosts, are_given_to_the_next_host_after_minutes_however_many_waited) {
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  wait_as(dead_, 8);
  ASSERT_EQ(lock(kC, 0, 1, true), NLM4_BLOCKED);
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  nlm4_stats got = NLM4_BLOCKED;
  for (int i = 0; i < 8 && got == NLM4_BLOCKED; ++i) {
    loop_.pass(30s);
    got = lock(kC, 0, 1, true);
  }
  EXPECT_EQ(got, NLM4_GRANTED);
}

TEST_F(LocksBehindDeadHosts, are_free_after_minutes_where_nobody_else_waits) {
  const auto before = reason_counters().of(Reason::LockGrantUndelivered);
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  wait_as(dead_, 8);
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.pass(4min);
  EXPECT_EQ(service_->size(), 0u);
  EXPECT_EQ(reason_counters().of(Reason::LockGrantUndelivered), before + 1);
}

TEST_F(LocksBehindDeadHosts, are_given_first_to_hosts_that_still_ask) {
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  for (int i = 0; i < 40; ++i) wait_as(FakePeers::kDead + std::to_string(i), 1);
  loop_.pass(3min);
  ASSERT_EQ(lock(kC, 0, 1, true), NLM4_BLOCKED);
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.drain();
  EXPECT_EQ(host(kC).granted.size(), 1u);
  ASSERT_EQ(unlock(kC, 0, 1), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 0, 1), NLM4_DENIED) << "one that asks no more has its turn then";
}

TEST_F(Locks, are_still_waited_for_by_a_host_that_asks_though_it_cannot_be_reached) {
  ASSERT_EQ(lock(kA, 0, 20), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  host(kB).up = false;
  ASSERT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(lock(kB, 15, 1, true), NLM4_BLOCKED);
    ASSERT_EQ(lock(kC, 15, 1, true), NLM4_BLOCKED);
    loop_.pass(30s);
  }
  EXPECT_EQ(lock(kA, 0, 1), NLM4_GRANTED) << "it did not ask for that one";
  ASSERT_EQ(unlock(kA, 0, 0), NLM4_GRANTED);
  EXPECT_EQ(test(kA, 15, 1).test_stat.holder().oh, object(std::string("1@") + kB));
}

TEST_F(Locks, stay_with_a_client_that_may_have_been_told_and_cannot_be_reached_any_more) {
  const auto before = reason_counters().of(Reason::LockGrantUndelivered);
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  host(kB).is_silent = true;
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.pass(1s);
  ASSERT_EQ(host(kB).granted.size(), 1u);
  host(kB).up = false;
  loop_.pass(1h);
  EXPECT_EQ(reason_counters().of(Reason::LockGrantUndelivered), before);
  EXPECT_EQ(lock(kC, 0, 1), NLM4_DENIED) << "B has it";
  EXPECT_EQ(unlock(kB, 0, 1), NLM4_GRANTED);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(Locks, need_no_call_back_when_the_client_asks_again) {
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  host(kB).up = false;
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 0, 1, true), NLM4_GRANTED);
  host(kB).up = true;
  loop_.pass(1h);
  EXPECT_TRUE(host(kB).granted.empty());
  EXPECT_EQ(service_->size(), 1u);
}

TEST_F(Locks, are_neither_waited_for_nor_held_after_a_cancel) {
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  ASSERT_EQ(lock(kC, 0, 1, true), NLM4_BLOCKED);
  EXPECT_EQ(cancel(kB, 0, 1), NLM4_GRANTED);
  EXPECT_EQ(cancel(kB, 0, 1), NLM4_DENIED) << "nothing is waiting";
  host(kC).up = false;
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.pass(5s);
  EXPECT_EQ(cancel(kC, 0, 1), NLM4_GRANTED) << "it was granted, but C has not heard of it";
  EXPECT_EQ(service_->size(), 0u);
  loop_.pass(1h);
  EXPECT_TRUE(host(kB).granted.empty());
}

TEST_F(Locks, asked_for_by_message_are_answered_by_message) {
  from(kA);
  ask<NLMPROC4_LOCK_MSG>({object("first"), false, true, lock_of(kA, 0, 1), false, 0});
  loop_.drain();
  ASSERT_EQ(host(kA).lock_results.size(), 1u);
  EXPECT_EQ(host(kA).lock_results[0], (nlm4_res{object("first"), {NLM4_GRANTED}}));
  from(kB);
  ask<NLMPROC4_TEST_MSG>({object("second"), true, lock_of(kB, 0, 1)});
  loop_.drain();
  ASSERT_EQ(host(kB).test_results.size(), 1u);
  EXPECT_EQ(host(kB).test_results[0].test_stat.stat, NLM4_DENIED);

  ask<NLMPROC4_LOCK_MSG>({object("third"), true, true, lock_of(kB, 0, 1), false, 0});
  loop_.drain();
  EXPECT_EQ(host(kB).lock_results.back(), (nlm4_res{object("third"), {NLM4_BLOCKED}}));
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.pass(2s);
  ASSERT_FALSE(host(kB).granted_messages.empty());
  const nlm4_testargs grant = host(kB).granted_messages.back();
  EXPECT_EQ(grant.alock, lock_of(kB, 0, 1));
  from(kC);
  ask<NLMPROC4_GRANTED_RES>({grant.cookie, {NLM4_DENIED}});
  EXPECT_EQ(service_->size(), 2u) << "not C's to refuse: lock and grant";
  from(kB);
  ask<NLMPROC4_GRANTED_RES>({object("?"), {NLM4_DENIED}});
  ask<NLMPROC4_GRANTED_RES>({grant.cookie, {NLM4_GRANTED}});
  const std::size_t offers = host(kB).granted_messages.size();
  loop_.pass(1h);
  EXPECT_EQ(host(kB).granted_messages.size(), offers);
  EXPECT_EQ(service_->size(), 1u);
}

TEST_F(Locks, asked_for_by_message_are_answered_although_others_cannot_be_reached) {
  host(kA).up = false;
  host(kA).silence = 5s;
  for (int i = 0; i < 300; ++i) {
    from(kA);
    ask<NLMPROC4_TEST_MSG>({object("lost"), true, lock_of(kA, 0, 1)});
  }
  from(kB);
  ask<NLMPROC4_TEST_MSG>({object("heard"), true, lock_of(kB, 0, 1)});
  loop_.pass(1s);
  EXPECT_EQ(host(kB).test_results.size(), 1u);
  EXPECT_EQ(host(kA).attempts, 28) << "an eighth of what was free";
  loop_.pass(10s);
  host(kA).up = true;
  from(kA);
  ask<NLMPROC4_TEST_MSG>({object("heard"), true, lock_of(kA, 0, 1)});
  loop_.pass(1s);
  EXPECT_EQ(host(kA).test_results.size(), 1u);
}

TEST_F(Locks, are_kept_when_the_client_may_have_heard_an_earlier_offer) {
  const auto refuse_at = [&](std::size_t offers) {
    ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
    from(kB);
    ask<NLMPROC4_LOCK_MSG>({object("w"), true, true, lock_of(kB, 0, 1), false, 0});
    host(kB).granted_messages.clear();
    ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
    loop_.drain();
    while (host(kB).granted_messages.size() < offers) loop_.pass(1s);
    ASSERT_EQ(host(kB).granted_messages.size(), offers);
    const netobj cookie = host(kB).granted_messages.back().cookie;
    from(kB);
    ask<NLMPROC4_GRANTED_RES>({cookie, {NLM4_DENIED}});
  };
  refuse_at(1);
  EXPECT_EQ(service_->size(), 0u);
  loop_.pass(1min);
  refuse_at(2);
  EXPECT_EQ(service_->size(), 1u) << "B's";
  EXPECT_EQ(lock(kC, 0, 1), NLM4_DENIED);
  EXPECT_EQ(unlock(kB, 0, 1), NLM4_GRANTED);

  // An answer that asks for time is one.
  ASSERT_EQ(lock(kA, 0, 1), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 1, true), NLM4_BLOCKED);
  host(kB).verdict = NLM4_DENIED_GRACE_PERIOD;
  ASSERT_EQ(unlock(kA, 0, 1), NLM4_GRANTED);
  loop_.pass(5s);
  host(kB).verdict = NLM4_DENIED;
  loop_.pass(35s);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(Locks, are_not_granted_to_clients_that_cannot_be_recorded) {
  std::filesystem::remove_all(directory_.hosts());
  EXPECT_EQ(lock(kA, 0, 10), NLM4_DENIED_NOLOCKS);
  EXPECT_EQ(service_->size(), 0u);
  from(kA);
  nlm4_lockargs unmonitored{object("c"), true, true, lock_of(kA, 0, 1), false, 0};
  EXPECT_EQ(ask<NLMPROC4_NM_LOCK>(unmonitored).stat.stat, NLM4_GRANTED) << "wants no monitoring";
}

TEST_F(Locks, are_released_when_SM_NOTIFY_tells_that_their_host_restarted) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 20, 10), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, 5, true), NLM4_BLOCKED);
  notify(kA, "host-192.0.2.1.example.org", 3);
  loop_.drain();
  ASSERT_EQ(host(kB).granted.size(), 1u);
  EXPECT_EQ(service_->size(), 2u);

  state_ = 5;
  ASSERT_EQ(lock(kA, 6, 1), NLM4_GRANTED);
  notify(kA, "host-192.0.2.1", 5);
  EXPECT_EQ(service_->size(), 3u) << "the lock is from after the restart the news is of";
  notify(kA, "host-192.0.2.1", 7);
  EXPECT_EQ(service_->size(), 2u);
  state_ = 0;
  ASSERT_EQ(lock(kA, 6, 1), NLM4_GRANTED);
  notify(kA, "host-192.0.2.1", 7);
  EXPECT_EQ(service_->size(), 3u) << "the same news twice";
}

TEST_F(Locks, are_released_after_a_hosts_restart_though_it_locks_before_its_SM_NOTIFY) {
  state_ = 1;
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  state_ = 3;
  ASSERT_EQ(lock(kA, 20, 10), NLM4_GRANTED);
  EXPECT_EQ(test(kC, 0, 5).test_stat.stat, NLM4_GRANTED);
  notify(kA, "host-192.0.2.1", 3);
  EXPECT_EQ(test(kC, 20, 1).test_stat.stat, NLM4_DENIED) << "it is from after the restart";
  state_ = 1;
  ASSERT_EQ(lock(kA, 40, 10), NLM4_GRANTED);
  EXPECT_EQ(test(kC, 20, 1).test_stat.stat, NLM4_DENIED) << "a LOCK that was late is no restart";
}

TEST_F(Locks, are_not_released_by_the_word_of_a_stranger) {
  ASSERT_EQ(lock_as("twin", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("twin", kB, 10), NLM4_GRANTED);
  notify(kC, "twin", 3);
  EXPECT_EQ(service_->size(), 2u) << "which twin?";
  notify(kC, "elsewhere", 3);
  EXPECT_EQ(service_->size(), 2u);
  notify(kB, "twin", 3);
  EXPECT_EQ(service_->size(), 1u);
  notify("192.0.2.99", "twin", 3);
  EXPECT_EQ(service_->size(), 0u) << "there is only one, so that is his other address";
}

TEST_F(Locks,
       stay_with_a_namesake_when_a_host_that_has_nothing_any_more_says_again_that_it_restarted) {
  ASSERT_EQ(lock_as("node.a.org", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("node.b.org", kB, 10), NLM4_GRANTED);
  notify(kB, "node.b.org", 3);
  notify(kB, "node", 3);
  EXPECT_EQ(test(kC, 10, 5).test_stat.stat, NLM4_GRANTED);
  EXPECT_EQ(test(kC, 0, 5).test_stat.stat, NLM4_DENIED) << "of the one that has not restarted";
}

TEST_F(Locks, are_released_when_their_host_comes_back_at_an_address_that_it_had_before) {
  ASSERT_EQ(lock_as("laptop.example.org", kA, 0), NLM4_GRANTED);
  from(kA);
  ask<NLMPROC4_UNLOCK>({object("c"), {"laptop.example.org", handle(), object("a"), 1, 0, 5}});
  loop_.pass(24h);
  ASSERT_EQ(lock_as("laptop.example.org", kB, 0), NLM4_GRANTED);
  notify(kA, "laptop.example.org", 7);
  EXPECT_EQ(test(kC, 0, 5).test_stat.stat, NLM4_GRANTED);
}

TEST_F(Locks, stay_with_a_namesake_when_a_host_that_had_unlocked_says_twice_that_it_restarted) {
  ASSERT_EQ(lock_as("node.a.org", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("node.b.org", kB, 10), NLM4_GRANTED);
  from(kB);
  ask<NLMPROC4_UNLOCK>({object("c"), {"node.b.org", handle(), object("a"), 1, 10, 5}});
  notify(kB, "node.b.org", 3);
  notify(kB, "node", 3);
  EXPECT_EQ(test(kC, 0, 5).test_stat.stat, NLM4_DENIED) << "of the one that has not restarted";
}

TEST_F(Locks, are_told_apart_by_name_for_hosts_behind_one_address) {
  ASSERT_EQ(lock_as("one", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("two", kA, 10), NLM4_GRANTED);
  notify(kA, "two", 3);
  EXPECT_EQ(service_->size(), 1u);
  EXPECT_EQ(test(kB, 0, 5).test_stat.stat, NLM4_DENIED) << "one's is still there";
}

TEST_F(Locks, stay_with_a_host_when_another_behind_its_address_says_twice_that_it_restarted) {
  ASSERT_EQ(lock_as("one.example.org", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("two.example.org", kA, 10), NLM4_GRANTED);
  notify(kA, "two.example.org", 7);
  notify(kA, "two", 7);
  EXPECT_EQ(test(kB, 10, 5).test_stat.stat, NLM4_GRANTED);
  EXPECT_EQ(test(kB, 0, 5).test_stat.stat, NLM4_DENIED) << "one's";
  notify(kA, "three", 3);
  EXPECT_EQ(service_->size(), 0u) << "which of the two is not known";
}

TEST_F(Locks, stay_with_a_host_when_another_behind_its_address_restarts_that_has_unlocked) {
  ASSERT_EQ(lock_as("one", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("two", kA, 10), NLM4_GRANTED);
  from(kA);
  ask<NLMPROC4_UNLOCK>({object("c"), {"two", handle(), object("a"), 1, 10, 5}});
  notify(kA, "two", 7);
  EXPECT_EQ(test(kB, 0, 5).test_stat.stat, NLM4_DENIED) << "one's";
}

TEST_F(Locks, are_released_for_two_hosts_behind_one_address_when_both_restart) {
  ASSERT_EQ(lock_as("one", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("two", kA, 10), NLM4_GRANTED);
  notify(kA, "one", 3);
  EXPECT_EQ(service_->size(), 1u);
  notify(kA, "two", 3);
  EXPECT_EQ(service_->size(), 0u) << "that both count their restarts alike is chance";
}

TEST_F(Locks, are_not_released_by_old_news_whatever_strangers_have_said_meanwhile) {
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  // As many as are ever remembered.
  for (int i = 0; i < 4096; ++i)
    notify("198.18." + std::to_string(i / 256) + "." + std::to_string(i % 256), "forged", i);
  notify(kA, "host-192.0.2.1", 3);
  EXPECT_EQ(service_->size(), 0u);
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  notify(kA, "host-192.0.2.1", 3);
  EXPECT_EQ(service_->size(), 1u) << "it comes by UDP, and may come twice";
}

TEST_F(Locks, are_released_for_an_unmonitored_client_by_FREE_ALL) {
  from(kA);
  nlm4_lockargs args{object("c"), true, true, lock_of(kA, 0, 1), false, 0};
  ASSERT_EQ(ask<NLMPROC4_NM_LOCK>(args).stat.stat, NLM4_GRANTED);
  EXPECT_FALSE(std::filesystem::exists(directory_.hosts() + "/" + kA));
  from(kB);
  EXPECT_EQ(ask<NLMPROC4_NM_LOCK>({object("c"), true, true, lock_of(kB, 0, 1), false, 0}).stat.stat,
            NLM4_DENIED)
      << "nobody waits unmonitored";
  ask<NLMPROC4_FREE_ALL>({std::string("host-") + kA, 1});
  EXPECT_EQ(service_->size(), 1u) << "B speaks for itself only";
  from(kA);
  ask<NLMPROC4_FREE_ALL>({std::string("host-") + kA, 1});
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(Locks, deny_each_other_as_the_modes_of_SHARE_say) {
  nlm_shareargs args{object("s"), {"a", handle(), object("a"), fsm_DW, fsa_R}, false};
  from(kA);
  EXPECT_EQ(ask<NLMPROC4_SHARE>(args), (nlm4_shareres{object("s"), NLM4_GRANTED, 0}));
  from(kB);
  args.share = {"b", handle(), object("b"), fsm_DN, fsa_RW};
  EXPECT_EQ(ask<NLM3_SHARE>(args).stat, LCK_DENIED);
  args.share.access = fsa_R;
  EXPECT_EQ(ask<NLM3_SHARE>(args).stat, LCK_GRANTED);
  EXPECT_EQ(ask<NLM3_UNSHARE>(args).stat, LCK_GRANTED);
  EXPECT_EQ(service_->size(), 1u);
  args.share.fh = object("forged");
  EXPECT_EQ(ask<NLM3_SHARE>(args).stat, LCK_DENIED_NOLOCKS);
  EXPECT_EQ(ask<NLM3_UNSHARE>(args).stat, LCK_DENIED_NOLOCKS);
}

TEST_F(Locks, are_all_the_status_monitor_cares_for) {
  from("127.0.0.1");
  mon other;
  other.who.mon_name = "elsewhere";
  EXPECT_EQ(ask<SM_MON>(other).res_stat, STAT_FAIL);
  const std::int32_t state = ask<SM_STAT>({"elsewhere"}).state;
  EXPECT_EQ(ask<SM_UNMON>(other.who).state, state);
  EXPECT_EQ(ask<SM_UNMON_ALL>(other.who.id).state, state);
}

TEST_F(Locks, granted_to_this_host_by_others_are_not_wanted) {
  from(kA);
  EXPECT_EQ(ask<NLMPROC4_GRANTED>({object("g"), true, lock_of(kA, 0, 1)}).stat.stat, NLM4_DENIED);
}

}  // namespace
}  // namespace stag::nfs::lock
