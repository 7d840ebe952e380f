// CallbackConnections over TCP of this machine.
#include "nfs/v4/callback/callback_connections.h"

#include <gtest/gtest.h>

#include "rpc/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"

namespace stag::nfs::nfs4 {
namespace {

using Kind = CallbackOutcome::Kind;

// A client that listens for callbacks at a port of its own.
class Nfs40CallbackConnections : public ::testing::Test {
 protected:
  Nfs40CallbackConnections() {
    rpc::Program program(v4::NFS4_CALLBACK, v4::NFS_CB);
    program.add<v4::CB_NULL>([](rpc::CallContext&, xdr::Void) -> Probed { co_return xdr::Void{}; });
    program.add<v4::CB_COMPOUND>(
        [this](rpc::CallContext&, v4::CB_COMPOUND4args args) { return answer(std::move(args)); });
    client_.add(std::move(program));
    auto server = rpc::tcp::TcpServer::listen(loop_, {"127.0.0.1", 0}, client_);
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  ~Nfs40CallbackConnections() override {
    run(connections_.stop());
    if (server_ != nullptr) run(server_->close());
  }

  using Probed = Task<Result<xdr::Void, rpc::CallRefusal>>;
  Task<Result<v4::CB_COMPOUND4res, rpc::CallRefusal>> answer(v4::CB_COMPOUND4args args) {
    asked_.push_back(std::move(args));
    v4::CB_COMPOUND4res results;
    results.resarray.resize(1);
    results.resarray[0].resop = v4::OP_CB_RECALL;
    co_return results;
  }
  std::shared_ptr<BackChannel> path() {
    return std::make_shared<BackChannel>(CallbackAddress{server_->local(), "127.0.0.1", 7},
                                         v4::NFS4_CALLBACK, rpc::Credentials());
  }
  static CallbackRequest recall(const BackChannel& back) {
    CallbackRequest request = back.request();
    request.compound.argarray.resize(1);
    request.compound.argarray[0].argop = v4::OP_CB_RECALL;
    return request;
  }
  // Makes these Calls at once.
  std::vector<CallbackOutcome> call(const std::shared_ptr<BackChannel>& to,
                                    std::vector<CallbackRequest> requests) {
    std::vector<CallbackOutcome> outcomes;
    const std::size_t all = requests.size();
    for (CallbackRequest& request : requests)
      connections_.call(to, std::move(request), [&, all](CallbackOutcome outcome) {
        outcomes.push_back(outcome);
        if (outcomes.size() == all) loop_.stop();
      });
    loop_.run();
    return outcomes;
  }
  void run(Task<void> task) {
    const auto whole = [](net::EpollLoop* loop, Task<void> inner) -> Task<void> {
      co_await std::move(inner);
      loop->stop();
    };
    loop_.post([&] { detach(whole(&loop_, std::move(task))); });
    loop_.run();
  }

  net::EpollLoop loop_;
  rpc::Server client_;
  std::unique_ptr<rpc::tcp::TcpServer> server_;
  std::vector<v4::CB_COMPOUND4args> asked_;
  rpc::tcp::TcpConnector connector_{loop_};
  ExportTable exports_;
  CallbackConnections connections_{connector_, exports_};
};

TEST_F(Nfs40CallbackConnections, carry_all_Calls_to_one_client) {
  const auto back = path();
  CallbackRequest probe = back->request();
  const auto outcomes = call(back, {probe, recall(*back), recall(*back)});
  ASSERT_EQ(outcomes.size(), 3u);
  for (const CallbackOutcome& outcome : outcomes) EXPECT_EQ(outcome.kind, Kind::Answered);
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].callback_ident, 7u);
  EXPECT_EQ(asked_[0].minorversion, 0u);
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(Nfs40CallbackConnections, are_lost_with_a_client_that_does_not_listen) {
  const auto back = path();
  run(server_->close());
  server_ = nullptr;
  const auto outcomes = call(back, {recall(*back), recall(*back)});
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].kind, Kind::Lost);
  EXPECT_EQ(outcomes[1].kind, Kind::Lost);
  EXPECT_TRUE(connections_.empty());
}

TEST_F(Nfs40CallbackConnections, end_with_their_client) {
  auto back = path();
  EXPECT_EQ(call(back, {recall(*back)})[0].kind, Kind::Answered);
  connections_.sweep(loop_.now());
  EXPECT_EQ(connections_.size(), 1u);
  back = nullptr;
  connections_.sweep(loop_.now());
  EXPECT_EQ(connections_.size(), 0u);
}

}  // namespace
}  // namespace stag::nfs::nfs4
