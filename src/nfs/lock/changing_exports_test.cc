// NLM where exports change, and where they are open to clients by name.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "base/reason.h"
#include "nfs/export/client_names.h"
#include "nfs/export/server_context.h"
#include "nfs/lock/lock_service.h"
#include "nfs/proto/nlm.h"
#include "testing/held_executor.h"
#include "testing/nfs/one_name.h"
#include "testing/nfs/server_fixture.h"
#include "testing/nfs/store_with_programs.h"

namespace stag::nfs::lock {
namespace {

using namespace nlm;
using namespace std::chrono_literals;
using Mode = state::RangeMode;

class NoCallbacks final : public Peers {
 public:
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(Route, std::uint32_t,
                                                                    std::uint32_t,
                                                                    CancelToken) override {
    co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused)};
  }
};

class LocksOfChangingExports : public testing::NfsServerTest {
 protected:
  static constexpr const char* kA = "192.0.2.1";
  static constexpr const char* kB = "192.0.2.2";

  LocksOfChangingExports() {
    service_ = *LockService::open(nfs_.context(), {}, loop_, peers_);
    service_->add_programs(server_);
    serve(copy_);
    file_ = create(mounted("/changing"), "file", 0666);
  }
  ~LocksOfChangingExports() override {
    loop_.run([](LockService& service) -> Task<Ok> {
      co_await service.stop();
      co_return Ok{};
    }(*service_));
  }

  using Store = testing::StoreWithPrograms;
  // All have the same handles, as copies of a file system have.
  std::shared_ptr<Store> another_copy() {
    auto copy = std::make_shared<Store>(store_);
    copy->own_handle_space = "copy " + std::to_string(copies_.size());
    copy->has_locks = true;
    return copies_.emplace_back(std::move(copy));
  }
  void serve(std::shared_ptr<vfs::FileSystem> store, std::vector<ClientRule> clients = {}) {
    ExportOptions open;
    open.root_squash = false;
    ASSERT_TRUE(
        nfs_.replace_exports({{"/changing", std::move(store), open, std::move(clients)}}).ok());
  }
  // Open to clients by name, all of whose names `worker` asks for.
  void serve_by_name(const std::shared_ptr<Executor>& worker) {
    ExportOptions open;
    open.root_squash = false;
    serve(copy_, {testing::rule_by_name(open, worker)});
  }

  static netobj object(std::string_view text) { return Rope::copy_of(bytes_of(text)); }
  nlm4_lock lock_of(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    channel_.origin().peer = {host, 700};
    return {"host-" + host, Rope::copy_of(file_.data.bytes()), object("1@" + host), 1, offset,
            length};
  }
  nlm4_lockargs args_of(const std::string& host, std::uint64_t offset, bool block = false) {
    return {object("c"), block, true, lock_of(host, offset, 10), false, 0};
  }
  nlm4_stats lock(const std::string& host, std::uint64_t offset, bool block = false) {
    return call<NLMPROC4_LOCK>(args_of(host, offset, block)).stat.stat;
  }
  nlm4_stats test(const std::string& host, std::uint64_t offset) {
    return call<NLMPROC4_TEST>({object("t"), true, lock_of(host, offset, 10)}).test_stat.stat;
  }
  nlm4_stats unlock(const std::string& host, std::uint64_t offset) {
    return call<NLMPROC4_UNLOCK>({object("u"), lock_of(host, offset, 10)}).stat.stat;
  }
  nlm4_stats cancel(const std::string& host, std::uint64_t offset) {
    return call<NLMPROC4_CANCEL>({object("x"), true, true, lock_of(host, offset, 10)}).stat.stat;
  }

  std::vector<std::shared_ptr<Store>> copies_;  // programs have files of them open
  NoCallbacks peers_;
  std::unique_ptr<LockService> service_;
  std::shared_ptr<Store> copy_ = another_copy();
  v3::nfs_fh3 file_;
};

TEST_F(LocksOfChangingExports, are_logged_with_client_export_and_call_when_they_are_too_many) {
  static std::string told;
  set_trace_sink([](Reason reason, std::string_view where, std::string_view detail) {
    if (reason == Reason::LocksTooMany) told = std::string(where) + ": " + std::string(detail);
  });
  constexpr std::uint64_t kMost = 8192;  // of a client
  nlm4_stats status = NLM4_GRANTED;
  std::uint64_t asked = 0;
  for (; status == NLM4_GRANTED && asked <= kMost; ++asked) status = lock(kA, 20 * asked);
  set_trace_sink(nullptr);
  EXPECT_EQ(status, NLM4_DENIED_NOLOCKS);
  EXPECT_EQ(asked, kMost + 1);
  EXPECT_TRUE(std::regex_match(told, std::regex("192\\.0\\.2\\.1:700: host host-192\\.0\\.2\\.1, "
                                                "export /changing, xid 0x[0-9a-f]{8}")))
      << told;
}

TEST_F(LocksOfChangingExports, exclude_programs_that_use_the_copy_in_its_place) {
  ASSERT_EQ(lock(kA, 0), NLM4_GRANTED);
  ASSERT_EQ(unlock(kA, 0), NLM4_GRANTED);
  const auto restored = another_copy();
  serve(restored);
  restored->locks.of_programs.set({0, 9}, Mode::Exclusive);
  EXPECT_EQ(lock(kA, 0), NLM4_DENIED);
  EXPECT_EQ(test(kA, 0), NLM4_DENIED);
  EXPECT_EQ(lock(kA, 20), NLM4_GRANTED);
  EXPECT_TRUE(restored->locks.server_has(20, 29, Mode::Exclusive));
}

TEST_F(LocksOfChangingExports, are_of_the_store_that_their_export_has_now) {
  ASSERT_EQ(lock(kA, 0), NLM4_GRANTED);
  ASSERT_EQ(unlock(kA, 0), NLM4_GRANTED);
  serve(another_copy());
  ASSERT_EQ(lock(kA, 0), NLM4_GRANTED);
  ASSERT_EQ(service_->files().size(), 1u);
  const FileKey file = service_->files().front();
  EXPECT_EQ(file.store, nfs_.context().exports.current()->find(file.via)->store);
}

TEST_F(LocksOfChangingExports, are_given_back_whatever_store_they_were_taken_of) {
  const nlm_shareargs share{object("s"), {"a", lock_of(kA, 0, 1).fh, object("a"), fsm_DW, fsa_R}};
  ASSERT_EQ(lock(kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, true), NLM4_BLOCKED);
  ASSERT_EQ(lock(kB, 20), NLM4_GRANTED);
  ASSERT_EQ(call<NLMPROC4_SHARE>(share).stat, NLM4_GRANTED);
  serve(another_copy());
  ASSERT_EQ(lock(kA, 40), NLM4_GRANTED);
  serve(another_copy());
  ASSERT_EQ(lock(kA, 60), NLM4_GRANTED);
  EXPECT_EQ(cancel(kB, 0), NLM4_GRANTED);
  EXPECT_EQ(cancel(kB, 0), NLM4_DENIED) << "it waits no more";
  for (const std::uint64_t offset : {0, 40, 60}) EXPECT_EQ(unlock(kA, offset), NLM4_GRANTED);
  EXPECT_EQ(unlock(kB, 20), NLM4_GRANTED);
  EXPECT_EQ(call<NLMPROC4_UNSHARE>(share).stat, NLM4_GRANTED);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(LocksOfChangingExports, are_granted_to_AUTH_SYS_where_the_export_takes_AUTH_NONE_alone) {
  ExportOptions none;
  none.flavors = {oncrpc::AuthFlavor::AUTH_NONE};
  ASSERT_TRUE(nfs_.replace_exports({{"/changing", copy_, none}}).ok());
  EXPECT_EQ(lock(kA, 0), NLM4_GRANTED);
  EXPECT_EQ(unlock(kA, 0), NLM4_GRANTED);
}

TEST_F(LocksOfChangingExports, release_of_a_file_frees_also_what_waiting_requests_get_then) {
  ASSERT_EQ(lock(kA, 0), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, 0, true), NLM4_BLOCKED);
  ASSERT_EQ(lock(kB, 20), NLM4_GRANTED);
  const FileKey file = service_->files().front();
  EXPECT_EQ(service_->release(file), 3u);
  EXPECT_TRUE(service_->held(file).empty());
  EXPECT_EQ(service_->release(file), 0u);
  loop_.pass(1s);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(LocksOfChangingExports, exclude_other_clients_of_a_copy_in_the_place_of_the_store) {
  ASSERT_EQ(lock(kA, 0), NLM4_GRANTED);
  serve(another_copy());
  EXPECT_EQ(test(kB, 0), NLM4_DENIED);
  EXPECT_EQ(lock(kB, 0), NLM4_DENIED);
  EXPECT_EQ(lock(kB, 0, true), NLM4_DENIED_GRACE_PERIOD) << "it asks again";
  EXPECT_EQ(lock(kA, 0), NLM4_GRANTED) << "his own";
  EXPECT_EQ(unlock(kA, 0), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 0), NLM4_GRANTED);
}

TEST_F(LocksOfChangingExports, wait_until_the_name_of_their_client_is_known) {
  const auto worker = std::make_shared<testing::HeldExecutor>(false);
  serve_by_name(worker);
  const auto locked = start<NLMPROC4_LOCK>(args_of(kA, 0));
  loop_.pass(1s);
  EXPECT_FALSE(locked->has_value());
  worker->run_all();
  loop_.pass(1s);
  ASSERT_TRUE(locked->has_value());
  EXPECT_EQ((*locked)->stat.stat, NLM4_GRANTED);
}

TEST_F(LocksOfChangingExports, are_DENIED_GRACE_PERIOD_to_clients_whose_name_nobody_says) {
  const auto silent = std::make_shared<testing::HeldExecutor>(false);
  serve_by_name(silent);
  const auto locked = start<NLMPROC4_LOCK>(args_of(kA, 0));
  const auto unlocked = start<NLMPROC4_UNLOCK>({object("u"), lock_of(kA, 20, 10)});
  ASSERT_TRUE(unlocked->has_value()) << "for that no name is wanted";
  loop_.pass(11s);
  ASSERT_TRUE(locked->has_value());
  EXPECT_EQ((*locked)->stat.stat, NLM4_DENIED_GRACE_PERIOD);
}

TEST_F(LocksOfChangingExports, are_not_granted_when_they_are_given_up_while_a_name_is_asked_for) {
  const auto worker = std::make_shared<testing::HeldExecutor>(false);
  serve_by_name(worker);
  const auto locked = start<NLMPROC4_LOCK>(args_of(kA, 0));
  EXPECT_EQ(unlock(kA, 0), NLM4_GRANTED);
  worker->run_all();
  loop_.pass(1s);
  ASSERT_TRUE(locked->has_value());
  EXPECT_EQ((*locked)->stat.stat, NLM4_DENIED);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(LocksOfChangingExports, are_not_granted_when_CANCEL_comes_while_a_name_is_asked_for) {
  const auto worker = std::make_shared<testing::HeldExecutor>(false);
  serve_by_name(worker);
  const auto locked = start<NLMPROC4_LOCK>(args_of(kA, 0, true));
  cancel(kA, 0);
  worker->run_all();
  loop_.pass(1s);
  ASSERT_TRUE(locked->has_value());
  EXPECT_EQ((*locked)->stat.stat, NLM4_DENIED);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(LocksOfChangingExports, are_to_be_asked_for_later_in_a_store_that_is_busy) {
  copy_->fault = vfs::Status::Delay;
  EXPECT_EQ(lock(kA, 0), NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(test(kA, 0), NLM4_DENIED_GRACE_PERIOD);
  copy_->fault = vfs::Status::Io;
  EXPECT_EQ(lock(kA, 0), NLM4_FAILED);
  copy_->fault.reset();
  copy_->locks_refusal = vfs::Status::Delay;
  EXPECT_EQ(lock(kA, 0), NLM4_DENIED_GRACE_PERIOD);
  copy_->locks_refusal.reset();
  EXPECT_EQ(lock(kA, 0), NLM4_GRANTED);
}

}  // namespace
}  // namespace stag::nfs::lock
