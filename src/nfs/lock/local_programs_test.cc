// NLM and programs of the server's host: neither gets what the other has locked.
#include "nfs/lock/local_programs.h"

#include <gtest/gtest.h>

#include <new>
#include <regex>
#include <string>

#include "base/reason.h"
#include "nfs/export/server_context.h"
#include "nfs/lock/lock_service.h"
#include "nfs/lock/records.h"
#include "nfs/proto/nlm.h"
#include "testing/nfs/lock_state.h"
#include "testing/nfs/server_fixture.h"
#include "testing/nfs/store_with_programs.h"

namespace stag::nfs::lock {
namespace {

using namespace nlm;
using namespace std::chrono_literals;
using Mode = state::RangeMode;

// No host can be called back.
class NoPeers final : public Peers {
 public:
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(Route, std::uint32_t,
                                                                    std::uint32_t,
                                                                    CancelToken) override {
    co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused)};
  }
};

class LocksAndPrograms : public testing::NfsServerTest {
 protected:
  static constexpr const char* kA = "192.0.2.1";
  static constexpr const char* kB = "192.0.2.2";

  LocksAndPrograms() {
    store_with_programs_->has_locks = true;
    ExportOptions open;
    open.root_squash = false;
    STAG_CHECK(nfs_.add_export("/programs", store_with_programs_, open).ok());
    LockServiceOptions options;
    options.grace_period = grace_;
    service_ = *LockService::open(nfs_.context(), options, loop_, peers_);
    service_->add_programs(server_);
    file_ = create(mounted("/programs"), "file", 0666);
  }

  void have_b_wait_and_get_it() {
    ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
    ASSERT_EQ(lock(kB, 0, 10, true), NLM4_BLOCKED);
    ASSERT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
    ASSERT_TRUE(server_has(0, 9, Mode::Exclusive)) << "it is B's";
  }
  ~LocksAndPrograms() override {
    loop_.run([](LockService& service) -> Task<Ok> {
      co_await service.stop();
      co_return Ok{};
    }(*service_));
  }

  testing::ProgramLocks& locks() { return store_with_programs_->locks; }
  static netobj object(std::string_view text) { return Rope::copy_of(bytes_of(text)); }
  nlm4_lock lock_of(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    channel_.origin().peer = {host, 700};
    return {"host-" + host, Rope::copy_of(file_.data.bytes()), object("1@" + host), 1, offset,
            length};
  }
  nlm4_stats lock(const std::string& host, std::uint64_t offset, std::uint64_t length,
                  bool block = false, bool exclusive = true, bool reclaim = false) {
    return call<NLMPROC4_LOCK>(
               {object("c"), block, exclusive, lock_of(host, offset, length), reclaim, state_})
        .stat.stat;
  }
  nlm4_stats unlock(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    return call<NLMPROC4_UNLOCK>({object("c"), lock_of(host, offset, length)}).stat.stat;
  }
  nlm4_stats cancel(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    return call<NLMPROC4_CANCEL>({object("c"), true, true, lock_of(host, offset, length)})
        .stat.stat;
  }
  nlm4_testres test(const std::string& host, std::uint64_t offset, std::uint64_t length) {
    return call<NLMPROC4_TEST>({object("t"), true, lock_of(host, offset, length)});
  }
  bool server_has(std::uint64_t first, std::uint64_t last, Mode mode) {
    return locks().server_has(first, last, mode);
  }

  const std::shared_ptr<testing::StoreWithPrograms> store_with_programs_ =
      std::make_shared<testing::StoreWithPrograms>(store_);
  const std::shared_ptr<state::GracePeriod> grace_ = std::make_shared<state::GracePeriod>();
  NoPeers peers_;
  std::unique_ptr<LockService> service_;
  v3::nfs_fh3 file_;
  std::int32_t state_ = 0;  // of the clients' status monitors
};

TEST_F(LocksAndPrograms, keep_each_other_out) {
  EXPECT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_TRUE(server_has(0, 9, Mode::Exclusive));
  locks().of_programs.set({20, 29}, Mode::Exclusive);
  EXPECT_EQ(lock(kA, 25, 1, false, false), NLM4_DENIED);
  const nlm4_testres tested = test(kA, 15, 6);
  ASSERT_EQ(tested.test_stat.stat, NLM4_DENIED);
  EXPECT_EQ(tested.test_stat.holder().l_offset, 20u);
  EXPECT_TRUE(tested.test_stat.holder().exclusive);
  EXPECT_EQ(unlock(kA, 0, 5), NLM4_GRANTED);
  EXPECT_TRUE(server_has(0, 4, Mode::None));
  EXPECT_TRUE(server_has(5, 9, Mode::Exclusive));
  EXPECT_EQ(unlock(kA, 0, 0), NLM4_GRANTED);
  EXPECT_EQ(locks().open, 0) << "nothing is kept open for nothing";
}

TEST_F(LocksAndPrograms,
       a_range_that_a_program_took_while_no_server_ran_is_not_reclaimed_and_the_log_says_so) {
  locks().of_programs.set({2, 5}, Mode::Exclusive);
  const StateDirectory former;
  {
    const auto opened = Records::open(former.path() + "/locks");
    STAG_CHECK(opened.ok() && (*opened)->keep_name("former").ok() && (*opened)->add(kA).ok());
  }
  ASSERT_TRUE(service_->adopt(former.path(), loop_.now() + 45s).ok());
  static std::string told;
  set_trace_sink([](Reason reason, std::string_view, std::string_view detail) {
    if (reason == Reason::ReclaimRefused) told = detail;
  });
  EXPECT_EQ(lock(kA, 0, 10, false, true, true), NLM4_DENIED);
  set_trace_sink(nullptr);
  EXPECT_TRUE(std::regex_match(told, std::regex("host host-192.0.2.1, export /programs, xid "
                                                "0x[0-9a-f]{8}: a lock of bytes 0 to 9")))
      << told;
}

TEST_F(LocksAndPrograms, share_what_both_only_read) {
  locks().of_programs.set({0, 9}, Mode::Shared);
  EXPECT_EQ(lock(kA, 0, 10, false, false), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 0, 10, false, false), NLM4_GRANTED);
  EXPECT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_TRUE(server_has(0, 9, Mode::Shared)) << "there is another reader";
  EXPECT_EQ(lock(kB, 0, 10), NLM4_DENIED);
  EXPECT_TRUE(server_has(0, 9, Mode::Shared));
}

TEST_F(LocksAndPrograms, a_LOCK_that_waits_for_a_program_is_granted_when_that_is_gone) {
  locks().of_programs.set({0, 9}, Mode::Exclusive);
  EXPECT_EQ(lock(kA, 0, 10, true), NLM4_BLOCKED);
  loop_.pass(60s);
  EXPECT_EQ(service_->size(), 1u) << "it waits";
  EXPECT_EQ(locks().open, 1);
  locks().of_programs = {};
  loop_.pass(2s);
  EXPECT_TRUE(server_has(0, 9, Mode::Exclusive));
  EXPECT_EQ(test(kB, 0, 10).test_stat.stat, NLM4_DENIED);
}

TEST_F(LocksAndPrograms, go_over_from_one_client_to_the_next_without_a_gap) {
  EXPECT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_EQ(lock(kB, 5, 10, true), NLM4_BLOCKED);
  EXPECT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
  EXPECT_TRUE(server_has(0, 4, Mode::None));
  EXPECT_TRUE(server_has(5, 14, Mode::Exclusive));
}

TEST_F(LocksAndPrograms, LOCK_is_refused_beyond_the_limit_of_open_files) {
  nfs_.context().local_locks->limit({0, 0});
  EXPECT_EQ(lock(kA, 0, 10), NLM4_DENIED_NOLOCKS);
  EXPECT_EQ(locks().open, 0);
}

TEST_F(LocksAndPrograms, FREE_ALL_gives_the_range_back_to_local_programs) {
  EXPECT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  channel_.origin().peer = {kA, 700};
  call<NLMPROC4_FREE_ALL>({std::string("host-") + kA, 0});
  EXPECT_TRUE(server_has(0, 9, Mode::None));
  EXPECT_EQ(locks().open, 0);
}

TEST_F(LocksAndPrograms, a_range_goes_back_to_programs_when_NLM_GRANTED_reaches_nobody) {
  have_b_wait_and_get_it();
  loop_.pass(4min);
  EXPECT_TRUE(server_has(0, 9, Mode::None));
  EXPECT_EQ(locks().open, 0);
}

TEST_F(LocksAndPrograms, a_range_goes_back_to_programs_by_CANCEL_of_a_LOCK_that_was_granted) {
  have_b_wait_and_get_it();
  EXPECT_EQ(cancel(kB, 0, 10), NLM4_GRANTED);
  EXPECT_TRUE(server_has(0, 9, Mode::None));
  EXPECT_EQ(locks().open, 0);
}

TEST_F(LocksAndPrograms, a_range_goes_back_to_programs_when_a_LOCK_tells_of_its_hosts_restart) {
  state_ = 1;
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  state_ = 3;
  EXPECT_EQ(lock(kA, 20, 10), NLM4_GRANTED);
  EXPECT_TRUE(server_has(0, 9, Mode::None));
  EXPECT_TRUE(server_has(20, 29, Mode::Exclusive));
}

TEST_F(LocksAndPrograms, UNLOCK_without_memory_to_give_the_range_back_has_it_given_back_later) {
  LocalLockTable& local = *nfs_.context().local_locks;
  bool full = false;
  const auto source = local.add({[&](const FileKey&, const state::Range&, state::RangeModes&) {
                                   if (full) throw std::bad_alloc();
                                 },
                                 [](const FileKey&, const std::string&) { return std::nullopt; }});
  service_->start();
  ASSERT_EQ(lock(kA, 0, 10), NLM4_GRANTED);
  full = true;
  EXPECT_EQ(unlock(kA, 0, 10), NLM4_GRANTED);
  loop_.pass(2min);
  EXPECT_TRUE(server_has(0, 9, Mode::Exclusive));
  full = false;
  loop_.pass(1min);
  EXPECT_TRUE(server_has(0, 9, Mode::None)) << "though nobody calls";
  EXPECT_EQ(locks().open, 0);
  local.remove(source);
}

}  // namespace
}  // namespace stag::nfs::lock
