// Hosts that have given all their locks back: nobody waits for them after a restart.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nfs/export/server_context.h"
#include "nfs/lock/lock_service.h"
#include "nfs/proto/nlm.h"
#include "testing/nfs/lock_state.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs::lock {
namespace {

using namespace nlm;
using namespace std::chrono_literals;

// Nobody is there; it remembers who was to be called.
class NobodyThere final : public Peers {
 public:
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(std::string host, std::uint32_t,
                                                                    std::uint32_t,
                                                                    CancelToken) override {
    called.push_back(std::move(host));
    co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused)};
  }
  std::vector<std::string> called;
};

class IdleHosts : public testing::NfsServerTest {
 protected:
  static constexpr const char* kA = "192.0.2.1";
  static constexpr const char* kB = "192.0.2.2";

  IdleHosts() {
    file_ = create(root(), "file", 0666);
    begin();
  }
  ~IdleHosts() override { crash(); }

  void begin() {
    server_of_locks_ = std::make_unique<rpc::Server>();
    service_ = *LockService::open(nfs_.context(),
                                  {.state_directory = directory_.path(), .host_name = "server"},
                                  loop_, peers_);
    service_->add_programs(*server_of_locks_);
    service_->start();
    locks_ = std::make_unique<testing::LoopbackChannel>(loop_, *server_of_locks_);
  }
  void crash() {
    loop_.run([](LockService& service) -> Task<Ok> {
      co_await service.stop();
      co_return Ok{};
    }(*service_));
  }
  void restart() {
    service_->remove_idle_records();
    crash();
    begin();
    loop_.pass(5s);
  }

  static netobj object(std::string_view text) { return Rope::copy_of(bytes_of(text)); }
  nlm4_lock lock_of(const std::string& host) {
    locks_->origin().peer = {host, 700};
    return {host, Rope::copy_of(file_.data.bytes()), object("1@" + host), 1, 0, 10};
  }
  template <class P>
  nlm4_stats ask(const typename P::Args& args) {
    const auto result = loop_.run(rpc::Client(*locks_, {}, credentials_).call<P>(args));
    STAG_CHECK(result.has_value() && result->ok());
    return (**result).stat.stat;
  }
  nlm4_stats lock(const std::string& host, bool block = false) {
    return ask<NLMPROC4_LOCK>({object("c"), block, true, lock_of(host), false, 0});
  }
  nlm4_stats unlock(const std::string& host) {
    return ask<NLMPROC4_UNLOCK>({object("u"), lock_of(host)});
  }
  bool is_recorded(const std::string& host) const {
    return std::filesystem::exists(directory_.hosts() + "/" + host);
  }

  StateDirectory directory_;
  NobodyThere peers_;
  v3::nfs_fh3 file_;
  std::unique_ptr<rpc::Server> server_of_locks_;
  std::unique_ptr<LockService> service_;
  std::unique_ptr<testing::LoopbackChannel> locks_;
};

TEST_F(IdleHosts, are_neither_told_of_an_orderly_restart_nor_waited_for) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  ASSERT_EQ(unlock(kA), NLM4_GRANTED);
  ASSERT_TRUE(is_recorded(kA)) << "no write for each lock that is released";
  restart();
  EXPECT_FALSE(is_recorded(kA));
  EXPECT_TRUE(peers_.called.empty());
  EXPECT_EQ(lock(kB), NLM4_GRANTED);
}

TEST_F(IdleHosts, are_those_only_that_neither_hold_nor_wait) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  ASSERT_EQ(lock(kB, true), NLM4_BLOCKED);
  restart();
  EXPECT_TRUE(is_recorded(kA));
  EXPECT_TRUE(is_recorded(kB));
  EXPECT_NE(std::ranges::count(peers_.called, kA), 0);
  EXPECT_EQ(lock(kB), NLM4_DENIED_GRACE_PERIOD);
}

TEST_F(IdleHosts, are_told_of_the_next_restart_when_the_last_one_could_not_be_told) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  restart();
  peers_.called.clear();
  restart();
  EXPECT_NE(std::ranges::count(peers_.called, kA), 0);
}

TEST_F(IdleHosts, are_waited_for_after_a_crash_but_no_longer_than_some_minutes) {
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  ASSERT_EQ(unlock(kA), NLM4_GRANTED);
  loop_.pass(1min);
  EXPECT_TRUE(is_recorded(kA)) << "it has just had a lock, and may want one again";
  loop_.pass(1min);
  EXPECT_FALSE(is_recorded(kA));
  ASSERT_EQ(lock(kA), NLM4_GRANTED);
  EXPECT_TRUE(is_recorded(kA));
  loop_.pass(1h);
  EXPECT_TRUE(is_recorded(kA)) << "it holds one";
  ASSERT_EQ(unlock(kA), NLM4_GRANTED);
  crash();
  begin();
  EXPECT_EQ(lock(kB), NLM4_DENIED_GRACE_PERIOD);
}

}  // namespace
}  // namespace stag::nfs::lock
