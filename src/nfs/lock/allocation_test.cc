// An owner that is told that memory ran out has the locks that it had. Callbacks close their
// connections all the same, and are sent again. Records of hosts without locks go all the same.
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/reason.h"
#include "nfs/lock/callback_sender.h"
#include "nfs/lock/client_states.h"
#include "nfs/lock/range_locks.h"
#include "nfs/proto/nlm.h"
#include "nfs/proto/nsm.h"
#include "rpc/server.h"
#include "testing/failing_new.h"
#include "testing/held_executor.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "testing/nfs/lock_service_fixture.h"
#include "testing/nfs/lock_state.h"
#include "testing/nfs/store_with_programs.h"
#include "vfs/memory/memory.h"

namespace stag::nfs::lock {
namespace {

OwnerPtr owner_named(const std::string& name) {
  return std::make_shared<const Owner>(Owner{{"192.0.2.1", "client"}, name, 1});
}

using Mode = state::RangeMode;

// True: there was no memory for it.
template <class Work>
bool runs_out(std::size_t n, bool lasting, Work work) {
  bool out = false;
  stag::testing::failure_lasts = lasting;
  stag::testing::allocations_until_failure = n;
  try {
    work();
  } catch (const std::bad_alloc&) {
    out = true;
  }
  stag::testing::failure_lasts = false;
  stag::testing::allocations_until_failure = 0;
  return out;
}

// As net::EpollLoop does it, where a function throws.
void drain(stag::testing::ManualLoop& loop) {
  for (;;) try {
      return loop.drain();
    } catch (const std::bad_alloc&) {
    }
}

class NlmLockMemory : public ::testing::Test {
 protected:
  // Sets or ends a lock with each of its allocations failing once, and then to its end. After each
  // failure `unchanged` is to be so.
  template <class Check>
  void fail_each(const Range& range, std::optional<bool> exclusive, Check unchanged) {
    const RangeLocks::Change change = locks.plan(mine, range, exclusive);
    for (std::size_t n = 1;; ++n) {
      stag::testing::allocations_until_failure = n;
      try {
        locks.apply(change);
        stag::testing::allocations_until_failure = 0;
        EXPECT_GT(n, 1u) << "it allocates nothing";
        return;
      } catch (const std::bad_alloc&) {
      }
      unchanged(n);
    }
  }
  // Whether another owner may not lock this range.
  bool keeps_out(const Range& range, bool exclusive = true) const {
    return locks.conflict(*other, range, exclusive).has_value();
  }

  RangeLocks locks;
  const OwnerPtr mine = owner_named("mine"), other = owner_named("other");
};

TEST_F(NlmLockMemory, running_out_in_UNLOCK_leaves_all_that_was_locked) {
  locks.apply(locks.plan(mine, {0, 99}, true));
  fail_each({40, 49}, std::nullopt, [&](std::size_t n) {
    EXPECT_TRUE(keeps_out({0, 39})) << n;
    EXPECT_TRUE(keeps_out({45, 45})) << n;
    EXPECT_TRUE(keeps_out({99, 99})) << n;
    EXPECT_EQ(locks.size(), 1u) << n;
  });
  EXPECT_FALSE(keeps_out({40, 49}));
  EXPECT_TRUE(keeps_out({39, 39}));
  EXPECT_TRUE(keeps_out({50, 50}));
  EXPECT_EQ(locks.size(), 2u);
}

TEST_F(NlmLockMemory, running_out_in_an_upgrade_leaves_the_lock_as_it_was) {
  locks.apply(locks.plan(mine, {0, 99}, false));
  fail_each({40, 49}, true, [&](std::size_t n) {
    EXPECT_FALSE(keeps_out({0, 99}, false)) << n;
    EXPECT_TRUE(keeps_out({45, 45})) << n;
    EXPECT_EQ(locks.size(), 1u) << n;
  });
  EXPECT_TRUE(keeps_out({40, 40}, false));
  EXPECT_FALSE(keeps_out({0, 39}, false));
  EXPECT_EQ(locks.size(), 3u);
}

TEST_F(NlmLockMemory, running_out_in_the_first_lock_of_an_owner_leaves_no_owner) {
  fail_each({0, 9}, true, [&](std::size_t n) {
    EXPECT_FALSE(keeps_out({0, 9})) << n;
    EXPECT_EQ(locks.holder(*mine), nullptr) << n;
  });
  EXPECT_TRUE(keeps_out({0, 9}));
  EXPECT_EQ(locks.holder(*mine), mine);
}

// A Channel over a connection ends the program where it is destroyed without having been closed.
class OneUse final : public rpc::Channel {
 public:
  OneUse(Loop& loop, rpc::Service& service) : Channel(1), inner_(loop, service) {}
  ~OneUse() override { EXPECT_TRUE(closed_); }
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    return inner_.call(message);
  }
  Task<void> close() override {
    closed_ = true;
    return inner_.close();
  }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return inner_.loop(); }
  rpc::TransportKind kind() const override { return inner_.kind(); }
  std::string where() const override { return inner_.where(); }

 private:
  testing::LoopbackChannel inner_;
  bool closed_ = false;
};

// One client's host.
class CallbackMemory : public ::testing::Test, private Peers {
 protected:
  CallbackMemory() {
    host_.add<nlm::NLMPROC4_GRANTED>([this](rpc::CallContext&, nlm::nlm4_testargs args) {
      return answer(nlm::nlm4_res{args.cookie, {nlm::NLM4_GRANTED}});
    });
    host_.add<nlm::NLMPROC4_TEST_RES>(
        [this](rpc::CallContext&, const nlm::nlm4_testres&) { return answer(xdr::Void{}); });
    host_.add<nsm::SM_NOTIFY>(
        [this](rpc::CallContext&, const nsm::stat_chge&) { return answer(xdr::Void{}); });
    manager_.on_grant([this](const Client&, Ticket ticket) { sender_->granted(ticket); });
  }
  template <class T>
  Task<T> answer(T value) {
    ++heard_;
    co_return value;
  }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(Route, std::uint32_t,
                                                                    std::uint32_t,
                                                                    CancelToken) override {
    if (!is_up_) co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused)};
    std::unique_ptr<rpc::Channel> channel = std::make_unique<OneUse>(loop_, host_);
    co_return channel;
  }
  Task<Ok> stop() {
    co_await sender_->stop();
    co_return Ok{};
  }
  void open_sender() {
    sender_.emplace(manager_, *records_, "server", loop_, static_cast<Peers&>(*this));
    heard_ = 0;
  }

  // Begins what `begin` does, with each of its allocations failing once; `check` sees what has
  // become of it half a minute later.
  template <class Begin, class Check>
  void fail_each(Begin begin, Check check) {
    for (std::size_t n = 1;; ++n) {
      ASSERT_LT(n, 1000u);
      open_sender();
      begin();
      stag::testing::allocations_until_failure = n;
      drain(loop_);
      const bool failed = std::exchange(stag::testing::allocations_until_failure, 0) == 0;
      loop_.pass(std::chrono::seconds(30));
      check(n);
      ASSERT_TRUE(loop_.run(stop()).has_value()) << n;
      if (failed) continue;
      EXPECT_GT(n, 3u);
      return;
    }
  }

  testing::ManualLoop loop_;
  StateDirectory directory_;
  std::unique_ptr<Records> records_ = *Records::open(directory_.path());
  LockManager manager_;
  rpc::Server host_;
  std::optional<CallbackSender> sender_;
  bool is_up_ = true;
  int heard_ = 0;
};

TEST_F(CallbackMemory, running_out_in_an_answer_loses_that_answer_alone) {
  const auto begin = [this] { sender_->answer<nlm::NLMPROC4_TEST_RES>({"192.0.2.1", {}}, {}); };
  fail_each(begin, [&](std::size_t n) {
    begin();
    loop_.pass(std::chrono::seconds(1));
    EXPECT_GE(heard_, 1) << n;
  });
}

TEST_F(CallbackMemory, running_out_in_NLM_GRANTED_has_it_sent_again_or_taken_back) {
  const auto owner = [](const char* address) {
    return std::make_shared<Owner>(Owner{{address, "name"}, "oh", 1});
  };
  const OwnerPtr waits = owner("192.0.2.1"), has = owner("192.0.2.2");
  const auto lock = [&](const OwnerPtr& who, bool block) {
    return manager_.lock({{{}, who, {}, true}, block, false, 0, {}}, TimePoint{});
  };
  fail_each(
      [&] {
        ASSERT_EQ(lock(has, false), nlm::NLM4_GRANTED);
        ASSERT_EQ(lock(waits, true), nlm::NLM4_BLOCKED);
        ASSERT_EQ(manager_.unlock({}, *has, {}), nlm::NLM4_GRANTED);
      },
      [&](std::size_t n) {
        EXPECT_EQ(manager_.pending_count(), 0u) << n;
        EXPECT_EQ(manager_.unlock({}, *waits, {}), nlm::NLM4_GRANTED) << n;
      });
}

TEST_F(CallbackMemory, running_out_in_a_round_of_SM_NOTIFY_leaves_it_to_the_next) {
  using namespace std::chrono_literals;
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 1000u);
    ASSERT_TRUE(records_->add("192.0.2.1").ok());
    records_ = *Records::open(directory_.path());
    open_sender();
    is_up_ = false;
    sender_->notify_restart();
    loop_.pass(500ms);
    is_up_ = true;
    stag::testing::allocations_until_failure = n;
    loop_.pass(1s);
    const bool failed = std::exchange(stag::testing::allocations_until_failure, 0) == 0;
    loop_.pass(10s);
    EXPECT_GE(heard_, 1) << n;
    ASSERT_TRUE(loop_.run(stop()).has_value()) << n;
    if (failed) continue;
    EXPECT_GT(n, 3u);
    return;
  }
}

// A has all, and B waits for two pieces of it. No more may wait, or be granted and not known.
class GrantMemory : public ::testing::Test {
 protected:
  GrantMemory() {
    manager_.on_grant([this](const Client&, Ticket ticket) { told_.push_back(ticket); });
  }
  nlm::nlm4_stats lock(const OwnerPtr& who, Range range, bool block = false) {
    return manager_.lock({{{}, who, range, true}, block, false, 0, {}}, TimePoint{});
  }

  LockManager manager_{{.waiters_of_address = 2}};
  std::list<Ticket> told_;  // each takes memory
  const OwnerPtr a_ = std::make_shared<const Owner>(Owner{{"192.0.2.1", "a"}, "oh", 1});
  const OwnerPtr b_ = std::make_shared<const Owner>(Owner{{"192.0.2.2", "b"}, "oh", 1});
};

TEST_F(GrantMemory, running_out_in_UNLOCK_has_all_told_that_wait_and_leaves_no_place_taken) {
  for (const bool lasting : {false, true})
    for (std::size_t n = 1;; ++n) {
      ASSERT_LT(n, 200u);
      ASSERT_EQ(lock(a_, {0, 99}), nlm::NLM4_GRANTED) << n;
      ASSERT_EQ(lock(b_, {0, 9}, true), nlm::NLM4_BLOCKED) << n;
      ASSERT_EQ(lock(b_, {20, 29}, true), nlm::NLM4_BLOCKED) << n;
      told_ = {};
      stag::testing::failed_allocations = 0;
      const auto unlock = [&] { EXPECT_EQ(manager_.unlock({}, *a_, {0, 99}), nlm::NLM4_GRANTED); };
      if (runs_out(n, lasting, unlock)) {
        EXPECT_EQ(manager_.size(), 3u) << n << ": whoever is told of a failure has what he had";
        unlock();
      } else if (stag::testing::failed_allocations != 0) {
        EXPECT_TRUE(manager_.overdue()) << n;
      }
      if (manager_.overdue()) {
        EXPECT_FALSE(manager_.retry()) << n;
        EXPECT_FALSE(manager_.overdue()) << n;
      }
      EXPECT_EQ(told_.size(), 2u) << n;
      EXPECT_EQ(manager_.pending_count(), 2u) << n;
      EXPECT_EQ(lock(b_, {0, 9}), nlm::NLM4_GRANTED) << n << ": it asks again";
      EXPECT_EQ(manager_.cancel({{}, b_, {20, 29}, true}), nlm::NLM4_GRANTED) << n;
      EXPECT_EQ(manager_.unlock({}, *b_, {}), nlm::NLM4_GRANTED) << n;
      EXPECT_EQ(manager_.pending_count(), 0u) << n;
      EXPECT_EQ(manager_.size(), 0u) << n;
      if (stag::testing::failed_allocations == 0) break;
    }
}

TEST_F(GrantMemory, running_out_in_UNLOCK_lets_the_waiter_unlock_before_it_is_told) {
  int untold = 0;
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    ASSERT_EQ(lock(a_, {0, 99}), nlm::NLM4_GRANTED) << n;
    ASSERT_EQ(lock(b_, {0, 9}, true), nlm::NLM4_BLOCKED) << n;
    stag::testing::failed_allocations = 0;
    runs_out(n, true, [&] { manager_.unlock({}, *a_, {0, 99}); });
    const auto held = manager_.held({});
    if (!held.empty() && held.front().owner == b_) {
      untold += manager_.pending_count() == 0 ? 1 : 0;
      EXPECT_EQ(manager_.unlock({}, *b_, {0, 99}), nlm::NLM4_GRANTED) << n;
    } else {
      EXPECT_EQ(manager_.cancel({{}, b_, {0, 9}, true}), nlm::NLM4_GRANTED) << n;
      EXPECT_EQ(manager_.unlock({}, *a_, {0, 99}), nlm::NLM4_GRANTED) << n;
    }
    manager_.retry();
    EXPECT_EQ(manager_.pending_count(), 0u) << n;
    EXPECT_EQ(manager_.size(), 0u) << n;
    if (stag::testing::failed_allocations == 0) break;
  }
  EXPECT_GT(untold, 0);
}

TEST_F(GrantMemory, running_out_in_LOCK_leaves_nothing_locked_and_nobody_waiting) {
  for (const bool blocks : {false, true})
    for (std::size_t n = 1;; ++n) {
      ASSERT_LT(n, 200u);
      if (blocks) {
        ASSERT_EQ(lock(a_, {0, 99}), nlm::NLM4_GRANTED);
      }
      const bool out = runs_out(n, false, [&] { lock(b_, {0, 9}, true); });
      EXPECT_EQ(manager_.size(), (blocks ? 1u : 0u) + (out ? 0u : 1u)) << n;
      EXPECT_EQ(manager_.knows("192.0.2.2"), !out) << n;
      EXPECT_EQ(manager_.files().size(), blocks || !out ? 1u : 0u) << n;
      manager_.cancel({{}, b_, {0, 9}, true});
      manager_.unlock({}, *b_, {});
      manager_.unlock({}, *a_, {});
      EXPECT_EQ(manager_.size(), 0u) << n;
      if (out) continue;
      EXPECT_GT(n, 2u);
      break;
    }
}

TEST_F(GrantMemory, running_out_when_a_waiter_does_not_want_its_lock_has_it_asked_once_more) {
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    ASSERT_EQ(lock(a_, {0, 99}), nlm::NLM4_GRANTED);
    ASSERT_EQ(manager_.lock({{{}, b_, {200, 299}, false}, false, false, 3, {}}, TimePoint{}),
              nlm::NLM4_GRANTED);
    ASSERT_EQ(lock(b_, {90, 209}, true), nlm::NLM4_BLOCKED);
    told_ = {};
    manager_.unlock({}, *a_, {});
    ASSERT_EQ(told_.size(), 1u);
    const Ticket ticket = told_.front();
    manager_.offering(ticket);
    const bool out = runs_out(n, false, [&] { manager_.answered(ticket, false); });
    EXPECT_EQ(manager_.is_pending(ticket), out) << n;
    if (out) {
      EXPECT_EQ(lock(a_, {90, 99}), nlm::NLM4_DENIED) << n;
      manager_.offering(ticket);
      manager_.answered(ticket, false);
    }
    EXPECT_EQ(lock(a_, {90, 199}), nlm::NLM4_GRANTED) << n;
    EXPECT_EQ(lock(a_, {200, 209}), nlm::NLM4_DENIED) << n << ": b has what it had before";
    EXPECT_EQ(manager_.unlock({}, *b_, {}), nlm::NLM4_GRANTED);
    EXPECT_EQ(manager_.unlock({}, *a_, {}), nlm::NLM4_GRANTED);
    EXPECT_EQ(manager_.size(), 0u) << n;
    if (!out) break;
  }
}

TEST_F(GrantMemory, running_out_when_a_host_has_restarted_leaves_nothing_of_it_that_nobody_ends) {
  const auto restarted = [&](std::int32_t state) {
    return manager_.restarted("192.0.2.2", "b", state, TimePoint{});
  };
  std::int32_t state = 5;
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    ASSERT_EQ(lock(b_, {0, 9}), nlm::NLM4_GRANTED);
    ASSERT_EQ(lock(a_, {100, 199}), nlm::NLM4_GRANTED);
    ASSERT_EQ(lock(b_, {100, 109}, true), nlm::NLM4_BLOCKED);
    ASSERT_EQ(lock(a_, {0, 9}, true), nlm::NLM4_BLOCKED);
    ASSERT_EQ(manager_.share({}, {b_, 1, 0}, false, TimePoint{}), nlm::NLM4_GRANTED);
    state += 2;
    const bool out = runs_out(n, false, [&] { EXPECT_TRUE(restarted(state)) << n; });
    if (out && manager_.knows("192.0.2.2")) {
      EXPECT_TRUE(restarted(state)) << n << ": it is told once more";
    }
    EXPECT_FALSE(manager_.knows("192.0.2.2")) << n;
    if (manager_.overdue()) manager_.retry();
    EXPECT_EQ(manager_.pending_count(), 1u) << n << ": a has what it waited for";
    EXPECT_EQ(manager_.unlock({}, *a_, {}), nlm::NLM4_GRANTED);
    EXPECT_EQ(manager_.size(), 0u) << n;
    if (!out) break;
  }
}

TEST_F(GrantMemory, running_out_in_SHARE_leaves_nothing_shared) {
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    const bool out = runs_out(n, false, [&] {
      manager_.share({}, {b_, 1, 0}, false, TimePoint{});
    });
    EXPECT_EQ(manager_.size(), out ? 0u : 1u) << n;
    EXPECT_EQ(manager_.knows("192.0.2.2"), !out) << n;
    EXPECT_EQ(manager_.files().size(), out ? 0u : 1u) << n;
    if (!out) break;
  }
}

TEST_F(GrantMemory, running_out_in_LOCK_keeps_programs_out_no_longer_than_others) {
  testing::ManualLoop loop;
  const vfs::Credentials root{0, 0, {}};
  testing::StoreWithPrograms store{std::make_shared<vfs::MemoryFileSystem>()};
  store.has_locks = true;
  const FileKey file{1, store.root()};
  LocalLockTable local;
  LockManager manager;
  manager.share_with_programs(local, [] {});
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    const auto pin = loop.run(local.open(file, store, {loop, root}, "192.0.2.1"));
    ASSERT_TRUE(pin.has_value() && pin->ok());
    const auto lock = [&] {
      manager.lock({{file, a_, {0, 9}, true}, false, false, 0, {}}, TimePoint{});
    };
    stag::testing::failed_allocations = 0;
    const bool out = runs_out(n, false, lock);
    if (local.overdue()) local.reconcile_overdue();
    EXPECT_TRUE(store.locks.server_has(0, 9, out ? Mode::None : Mode::Exclusive)) << n;
    manager.unlock(file, *a_, {});
    EXPECT_TRUE(store.locks.server_has(0, 9, Mode::None)) << n;
    if (stag::testing::failed_allocations == 0) break;
  }
}

class UpkeepMemory : public LockServiceFixture {
 protected:
  // That kA has, and kB waits for.
  LockService::LockId awaited_lock() {
    EXPECT_EQ(lock(kA), nlm::NLM4_GRANTED);
    EXPECT_EQ(lock(kB, true), nlm::NLM4_BLOCKED);
    peers_.called = {};
    file_ = service_->files().at(0);
    return LockService::id_of(file_, service_->held(file_).at(0));
  }

  FileKey file_{};
};

TEST_F(UpkeepMemory, that_runs_out_when_a_lock_ends_has_the_waiter_told_though_nobody_calls) {
  using namespace std::chrono_literals;
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    const LockService::LockId id = awaited_lock();
    bool done = false;
    stag::testing::allocations_until_failure = n;
    try {
      done = service_->release(id).has_value();
    } catch (const std::bad_alloc&) {
    }
    const bool failed = std::exchange(stag::testing::allocations_until_failure, 0) == 0;
    const auto held = service_->held(file_);
    if (!held.empty() && held.front().owner->client.address == kA) {
      ASSERT_FALSE(done) << n;
      ASSERT_TRUE(service_->release(id).has_value()) << n;
    }
    loop_.pass(1s);
    EXPECT_FALSE(peers_.called.empty()) << n;
    ASSERT_EQ(unlock(kB), nlm::NLM4_GRANTED) << n;
    loop_.pass(5min);
    EXPECT_EQ(service_->size(), 0u) << n;
    if (!failed) break;
  }
}

// Of a lock that has ended and nobody has got, and of the timer to look again who gets it.
TEST_F(UpkeepMemory, that_is_not_there_to_look_again_soon_has_the_waiter_told_at_the_next_turn) {
  using namespace std::chrono_literals;
  int late = 0;
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    const LockService::LockId id = awaited_lock();
    stag::testing::failed_allocations = 0;
    runs_out(n, true, [&] { service_->release(id); });
    const bool failed = stag::testing::failed_allocations != 0;
    if (service_->held(file_).empty()) {
      const Timer other = loop_.after(1h, [] {});  // in the place of one that has fired
      runs_out(1, true, [&] { drain(loop_); });
      loop_.pass(1s);
      EXPECT_TRUE(peers_.called.empty()) << n;
      ++late;
      loop_.pass(1min);
      EXPECT_FALSE(peers_.called.empty()) << n;
    }
    unlock(kA);
    ASSERT_EQ(unlock(kB), nlm::NLM4_GRANTED) << n;
    loop_.pass(5min);
    EXPECT_EQ(service_->size(), 0u) << n;
    if (!failed) break;
  }
  EXPECT_GT(late, 0);
}

TEST_F(UpkeepMemory, that_runs_out_in_NLM_GRANTED_leaves_no_lock_with_a_host_that_asks_no_more) {
  using namespace std::chrono_literals;
  for (const bool lasting : {false, true})
    for (std::size_t n = 1;; ++n) {
      ASSERT_LT(n, 200u);
      ASSERT_TRUE(service_->release(awaited_lock())) << n;
      stag::testing::failed_allocations = 0;
      runs_out(n, lasting, [&] {
        drain(loop_);
        if (lasting) loop_.pass(1min);
      });
      loop_.pass(6min);
      EXPECT_EQ(service_->size(), 0u) << n;
      unlock(kB);
      if (stag::testing::failed_allocations == 0) break;
    }
}

TEST_F(UpkeepMemory, that_runs_out_after_a_restart_has_the_hosts_told_all_the_same) {
  using namespace std::chrono_literals;
  ASSERT_EQ(lock(kA), nlm::NLM4_GRANTED);
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 200u);
    crash();
    begin();
    stag::testing::allocations_until_failure = n;
    drain(loop_);
    const bool failed = std::exchange(stag::testing::allocations_until_failure, 0) == 0;
    peers_.called = {};
    loop_.pass(2min);
    EXPECT_FALSE(peers_.called.empty()) << n;
    if (!failed) break;
    EXPECT_TRUE(is_recorded(kA)) << n;
  }
}

// It has no memory for one job.
class PoorExecutor final : public Executor {
 public:
  bool submit(Job&& job) override {
    if (std::exchange(fails, false)) throw std::bad_alloc();
    return held_.submit(std::move(job));
  }
  bool fails = false;

 private:
  testing::HeldExecutor held_{true};
};

TEST_F(UpkeepMemory, that_is_not_there_for_a_turn_is_asked_for_again_at_the_next) {
  using namespace std::chrono_literals;
  crash();
  const auto worker = std::make_shared<PoorExecutor>();
  worker_ = worker;
  begin();
  ASSERT_EQ(lock(kA), nlm::NLM4_GRANTED);
  ASSERT_EQ(unlock(kA), nlm::NLM4_GRANTED);
  loop_.pass(1min);
  const std::uint64_t before = reason_counters().of(Reason::OutOfMemory);
  worker->fails = true;
  loop_.pass(1min);
  EXPECT_FALSE(worker->fails) << "a turn has begun";
  EXPECT_EQ(reason_counters().of(Reason::OutOfMemory), before + 1);
  EXPECT_TRUE(is_recorded(kA));
  loop_.pass(1min);
  EXPECT_FALSE(is_recorded(kA));
}

TEST_F(UpkeepMemory, that_runs_out_in_a_turn_leaves_it_to_the_next) {
  using namespace std::chrono_literals;
  const std::uint64_t before = reason_counters().of(Reason::OutOfMemory);
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    ASSERT_EQ(lock(kA), nlm::NLM4_GRANTED);
    ASSERT_EQ(unlock(kA), nlm::NLM4_GRANTED);
    loop_.pass(1min);
    const std::uint64_t said = reason_counters().of(Reason::OutOfMemory);
    stag::testing::allocations_until_failure = n;
    loop_.pass(1min);
    const bool failed = std::exchange(stag::testing::allocations_until_failure, 0) == 0;
    EXPECT_EQ(reason_counters().of(Reason::OutOfMemory), said + (failed ? 1 : 0)) << n;
    loop_.pass(2min);
    EXPECT_FALSE(is_recorded(kA)) << n;
    if (!failed) break;
  }
  EXPECT_GT(reason_counters().of(Reason::OutOfMemory), before + 2);
}

TEST(ClientStatesAllocation, that_there_is_no_memory_for_are_not_known_and_can_be_later) {
  const Client client{"an address that does not fit a short string", std::string(100, 'n')};
  ClientStates states(1);
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    testing::allocations_until_failure = n;
    bool out = false;
    try {
      states.of(client);
    } catch (const std::bad_alloc&) {
      out = true;
    }
    testing::allocations_until_failure = 0;
    EXPECT_EQ(states.find(client) == nullptr, out) << n;
    EXPECT_EQ(states.size(), out ? 0u : 1u) << n;
    if (!out) break;
  }
  states.of({"192.0.2.1", "name"});
  EXPECT_EQ(states.size(), 1u);
}

}  // namespace
}  // namespace stag::nfs::lock
