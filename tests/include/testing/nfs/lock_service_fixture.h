// A lock service on a memory store, whose clients call it in-process, and which may crash and begin
// again with the records that it has left.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "nfs/export/server_context.h"
#include "nfs/lock/lock_service.h"
#include "nfs/proto/nlm.h"
#include "testing/loopback_channel.h"
#include "testing/nfs/lock_state.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs::lock {

// No host answers; remembers the hosts that were to be called.
class NobodyThere final : public Peers {
 public:
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(Route route, std::uint32_t,
                                                                    std::uint32_t,
                                                                    CancelToken) override {
    called.push_back(std::move(route.host));
    co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused)};
  }
  std::vector<std::string> called;
};

class LockServiceFixture : public testing::NfsServerTest {
 protected:
  static constexpr const char* kA = "192.0.2.1";
  static constexpr const char* kB = "192.0.2.2";

  LockServiceFixture() {
    file_ = create(root(), "file", 0666);
    begin();
  }
  ~LockServiceFixture() override { crash(); }

  void begin() {
    server_of_locks_ = std::make_unique<rpc::Server>();
    service_ = *LockService::open(nfs_.context(),
                                  {.state_directory = directory_.path(),
                                   .records_worker = worker_,
                                   .host_name = "server",
                                   .grace_period = grace_},
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
    loop_.pass(std::chrono::seconds(5));
  }

  static nlm::netobj object(std::string_view text) { return Rope::copy_of(bytes_of(text)); }
  nlm::nlm4_lock lock_of(const std::string& host) {
    locks_->origin().peer = {host, 700};
    return {host, Rope::copy_of(file_.data.bytes()), object("1@" + host), 1, 0, 10};
  }
  template <class P>
  nlm::nlm4_stats ask(const typename P::Args& args) {
    const auto result = loop_.run(rpc::Client(*locks_, {}, credentials_).call<P>(args));
    STAG_CHECK(result.has_value() && result->ok());
    return (**result).stat.stat;
  }
  nlm::nlm4_stats lock(const std::string& host, bool block = false) {
    return ask<nlm::NLMPROC4_LOCK>({object("c"), block, true, lock_of(host), false, 0});
  }
  nlm::nlm4_stats unlock(const std::string& host) {
    return ask<nlm::NLMPROC4_UNLOCK>({object("u"), lock_of(host)});
  }
  bool is_recorded(const std::string& host) const {
    return std::filesystem::exists(directory_.hosts() + "/" + host);
  }

  std::shared_ptr<Executor> worker_;           // of the records; null: the loop's
  std::shared_ptr<state::GracePeriod> grace_;  // null: the service's own
  StateDirectory directory_;
  NobodyThere peers_;
  v3::nfs_fh3 file_;
  std::unique_ptr<rpc::Server> server_of_locks_;
  std::unique_ptr<LockService> service_;
  std::unique_ptr<testing::LoopbackChannel> locks_;
};

}  // namespace stag::nfs::lock
