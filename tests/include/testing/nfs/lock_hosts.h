// A lock service whose clients' hosts can be called back: their lock managers and status monitors
// write down what they are told.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nfs/export/server_context.h"
#include "nfs/lock/lock_service.h"
#include "nfs/proto/nlm.h"
#include "nfs/proto/nsm.h"
#include "testing/loopback_channel.h"
#include "testing/nfs/lock_state.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs::lock {

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
  std::vector<std::string> called_from;
  rpc::Server server;
};

class FakePeers final : public Peers {
 public:
  // Hosts whose names begin so have not been there for long.
  static constexpr const char* kDead = "198.51.";
  explicit FakePeers(Loop& loop) : loop_(loop) {}
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> reach(Route route, std::uint32_t,
                                                                    std::uint32_t,
                                                                    CancelToken) override {
    if (route.host.starts_with(kDead)) {
      co_await sleep_for(loop_, 5s);
      co_return Failure{rpc::CallError::transport(Reason::TimedOut)};
    }
    FakeHost& found = hosts[route.host];
    found.called_from.push_back(std::move(route.from));
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

  // The host of the next call.
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

}  // namespace stag::nfs::lock
