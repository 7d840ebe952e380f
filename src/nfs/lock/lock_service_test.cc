// NLM and NSM as clients meet them: whole RPC messages in, calls back to fake hosts out.
#include "nfs/lock/lock_service.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/reason.h"
#include "endpoint/client.h"
#include "endpoint/listener.h"
#include "nfs/export/server_context.h"
#include "nfs/lock/lock_manager.h"
#include "nfs/lock/records.h"
#include "nfs/proto/nlm.h"
#include "nfs/proto/nsm.h"
#include "testing/nfs/lock_state.h"
#include "testing/nfs/server_fixture.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::lock {
namespace {

using namespace nlm;
using namespace nsm;
using namespace std::chrono_literals;

// A client's host: its lock manager and its status monitor.
struct FakeHost {
  FakeHost() {
    server.add<NLMPROC4_GRANTED>([this](rpc::CallContext& call, nlm4_testargs args) {
      granted.push_back(args);
      return answer_in_time(call.loop(), nlm4_res{args.cookie, {verdict}});
    });
    server.add<NLM3_GRANTED>([this](rpc::CallContext&, nlm_testargs args) {
      granted3.push_back(args);
      return answer(nlm_res{args.cookie, {LCK_GRANTED}});
    });
    server.add<NLMPROC4_GRANTED_MSG>([this](rpc::CallContext&, nlm4_testargs args) {
      granted_messages.push_back(args);
      return answer(xdr::Void{});
    });
    server.add<NLMPROC4_LOCK_RES>([this](rpc::CallContext&, nlm4_res args) {
      lock_results.push_back(args);
      return answer(xdr::Void{});
    });
    server.add<NLMPROC4_TEST_RES>([this](rpc::CallContext&, nlm4_testres args) {
      test_results.push_back(args);
      return answer(xdr::Void{});
    });
    server.add<SM_NOTIFY>([this](rpc::CallContext&, stat_chge news) {
      notified.push_back(news);
      return answer(xdr::Void{});
    });
  }
  template <class T>
  static Task<T> answer(T value) {
    co_return value;
  }

  Task<nlm4_res> answer_in_time(Loop& loop, nlm4_res value) {
    if (is_silent) co_await sleep_for(loop, 10min);
    co_return value;
  }

  bool up = true;
  bool is_silent = false;  // it takes GRANTED, and answers too late
  Duration silence{};      // before it is known that it is not up
  nlm4_stats verdict = NLM4_GRANTED;
  std::vector<nlm4_testargs> granted, granted_messages;
  std::vector<nlm_testargs> granted3;
  std::vector<nlm4_res> lock_results;
  std::vector<nlm4_testres> test_results;
  std::vector<stat_chge> notified;
  int attempts = 0;
  rpc::Server server;
};

class FakePeers final : public Peers {
 public:
  // Whose names begin so have not been there for long.
  static constexpr const char* kDead = "198.51.";
  explicit FakePeers(Loop& loop) : loop_(loop) {}
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(std::string host, std::uint32_t,
                                                                    std::uint32_t,
                                                                    CancelToken) override {
    if (host.starts_with(kDead)) {
      co_await sleep_for(loop_, 5s);
      co_return Failure{rpc::CallError::transport(Reason::TimedOut)};
    }
    FakeHost& found = hosts[host];
    ++found.attempts;
    if (!found.up) co_await sleep_for(loop_, found.silence);
    if (!found.up) co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused)};
    std::unique_ptr<rpc::Channel> channel =
        std::make_unique<testing::LoopbackChannel>(loop_, found.server);
    co_return channel;
  }
  std::map<std::string, FakeHost> hosts;

 private:
  Loop& loop_;
};

class Locks : public testing::NfsServerTest {
 protected:
  static constexpr const char* kA = "192.0.2.1";
  static constexpr const char* kB = "192.0.2.2";
  static constexpr const char* kC = "192.0.2.3";

  Locks() {
    open();
    service_->add_programs(server_);
    file_ = create(root(), "file", 0666);
  }
  ~Locks() override { loop_.run(stopped(*service_)); }

  void open() {
    auto opened = LockService::open(nfs_.context(),
                                    {.state_directory = directory_.path(), .host_name = "server"},
                                    loop_, peers_);
    STAG_CHECK(opened.ok());
    service_ = *std::move(opened);
    service_->start();
  }
  // What clients see of it: another process with the same state.
  void restart() {
    loop_.run(stopped(*service_));
    rpc::Server* const old = &server_;
    open();
    replaced_ = std::make_unique<rpc::Server>();
    service_->add_programs(*replaced_);
    STAG_CHECK(old != replaced_.get());
    lock_channel_ = std::make_unique<testing::LoopbackChannel>(loop_, *replaced_);
  }
  static Task<Ok> stopped(LockService& service) {
    co_await service.stop();
    co_return Ok{};
  }

  // Whoever calls next.
  void from(const std::string& host, std::uint16_t port = 700) {
    channel_.origin().peer = {host, port};
    if (lock_channel_) lock_channel_->origin().peer = {host, port};
  }
  template <class P>
  typename P::Results ask(const typename P::Args& args) {
    if (!lock_channel_) return call<P>(args);
    const auto result = loop_.run(rpc::Client(*lock_channel_, {}, credentials_).call<P>(args));
    STAG_CHECK(result.has_value() && result->ok());
    return **result;
  }

  static netobj object(std::string_view text) { return Rope::copy_of(bytes_of(text)); }
  netobj handle() const { return Rope::copy_of(file_.data.bytes()); }
  nlm4_lock lock_of(const std::string& host, std::uint64_t offset, std::uint64_t length) const {
    return {"host-" + host, handle(), object("1@" + host), 1, offset, length};
  }
  nlm4_stats lock(const std::string& host, std::uint64_t offset, std::uint64_t length,
                  bool block = false, bool exclusive = true, bool reclaim = false) {
    from(host);
    const auto res = ask<NLMPROC4_LOCK>(
        {object("cookie"), block, exclusive, lock_of(host, offset, length), reclaim, state_});
    EXPECT_EQ(res.cookie, object("cookie"));
    return res.stat.stat;
  }
  nlm4_stats lock_as(const std::string& name, const std::string& host, std::uint64_t offset) {
    from(host);
    return ask<NLMPROC4_LOCK>(
               {object("c"), false, true, {name, handle(), object("a"), 1, offset, 5}, false, 0})
        .stat.stat;
  }
  nlm4_stats unlock(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    from(host);
    return ask<NLMPROC4_UNLOCK>({object("c"), lock_of(host, offset, length)}).stat.stat;
  }
  nlm4_stats cancel(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    from(host);
    return ask<NLMPROC4_CANCEL>({object("c"), true, true, lock_of(host, offset, length)}).stat.stat;
  }
  nlm4_testres test(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    from(host);
    return ask<NLMPROC4_TEST>({object("t"), true, lock_of(host, offset, length)});
  }
  void notify(const std::string& host, const std::string& name, std::int32_t state) {
    from(host);
    ask<SM_NOTIFY>({name, state});
  }
  FakeHost& host(const std::string& address) { return peers_.hosts[address]; }

  StateDirectory directory_;
  FakePeers peers_{loop_};
  std::unique_ptr<LockService> service_;
  std::unique_ptr<rpc::Server> replaced_;
  std::unique_ptr<testing::LoopbackChannel> lock_channel_;
  v3::nfs_fh3 file_;
  std::int32_t state_ = 0;
};

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
  EXPECT_FALSE(std::filesystem::exists(directory_.hosts() + "/" + kA)) << "it was told";
  EXPECT_TRUE(std::filesystem::exists(directory_.hosts() + "/" + kB));
  host(kB).up = true;
  EXPECT_EQ(lock(kB, 20, 10, false, true, true), NLM4_GRANTED);
  loop_.pass(35s);
  EXPECT_EQ(host(kB).notified.size(), 1u);
  EXPECT_EQ(host(kA).notified.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(directory_.hosts() + "/" + kB)) << "it holds a lock again";
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
  ASSERT_EQ(lock(kA, 6, 1), NLM4_GRANTED);
  notify(kA, "host-192.0.2.1", 7);
  EXPECT_EQ(service_->size(), 3u) << "the same news twice";
}

TEST_F(Locks, from_before_a_hosts_restart_are_released_though_it_locks_before_its_SM_NOTIFY) {
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

TEST_F(Locks, of_hosts_behind_one_address_are_told_apart_by_name) {
  ASSERT_EQ(lock_as("one", kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock_as("two", kA, 10), NLM4_GRANTED);
  notify(kA, "two", 3);
  EXPECT_EQ(service_->size(), 1u);
  EXPECT_EQ(test(kB, 0, 5).test_stat.stat, NLM4_DENIED) << "one's is still there";
}

TEST_F(Locks, of_two_hosts_behind_one_address_are_released_when_both_restart) {
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

TEST_F(Locks, of_an_unmonitored_client_are_released_by_FREE_ALL) {
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

TEST_F(Locks, by_SHARE_deny_each_other_as_their_modes_say) {
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
