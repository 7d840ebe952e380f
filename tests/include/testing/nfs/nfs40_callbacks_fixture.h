// Clients of version 4.0 that listen for callbacks, on the server of nfs40_fixture.h. Their network
// is a Connector that reaches one CallbackClient, whatever the address.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/completion.h"
#include "testing/nfs/nfs40_fixture.h"
#include "testing/nfs/nfs4_callback_client.h"

namespace stag::testing {

class CallbackNetwork final : public rpc::Connector {
 public:
  CallbackNetwork(ManualLoop& loop, rpc::Service& service) : loop_(loop), service_(service) {}
  Loop& loop() override { return loop_; }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address server,
                                                                      CancelToken) override {
    connected_to.push_back(server);
    if (!reachable)
      co_return Failure{rpc::CallError::transport(Reason::ConnectionRefused, "the client")};
    co_return std::make_unique<Counted>(*this);
  }

  std::vector<Address> connected_to;
  bool reachable = true;
  bool cut = false;      // Calls on connections are lost
  bool silent = false;   // they are not answered before release()
  int open = 0;          // connections
  bool reduced = false;  // whether any Call had items that a transport may move apart
  void release() {
    silent = false;
    for (const auto& each : std::exchange(waiting_, {})) each->complete(true);
  }

 private:
  class Counted final : public rpc::Channel {
   public:
    explicit Counted(CallbackNetwork& network)
        : Channel(1), network_(network), calls_(network.loop_, network.service_) {
      ++network_.open;
    }
    ~Counted() override { --network_.open; }
    Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
      network_.reduced |= !message.eligible_arguments.empty() || !message.eligible_results.empty();
      if (network_.cut)
        co_return Failure{rpc::CallError::transport(Reason::ConnectionReset, where())};
      if (network_.silent)
        co_await *network_.waiting_.emplace_back(std::make_shared<Completion<bool>>());
      co_return co_await calls_.call(message);
    }
    Task<void> close() override { co_return; }
    void serve_reverse(rpc::Service&) override {}
    Loop& loop() override { return network_.loop_; }
    rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
    std::string where() const override { return "the client"; }

   private:
    CallbackNetwork& network_;
    LoopbackChannel calls_;
  };

  ManualLoop& loop_;
  rpc::Service& service_;
  std::vector<std::shared_ptr<Completion<bool>>> waiting_;
};

// `client_` is called back. `other_` is not, and has an open owner that is confirmed.
class Nfs40CallbacksServed : public Nfs40Served {
 protected:
  explicit Nfs40CallbacksServed(nfs::nfs4::Nfs4Options options = {})
      : Nfs40Served(std::move(options)) {}
  void SetUp() override {
    nfs4_.start_callbacks(loop_, &network_);
    other_ = client_ = set_up_client("another");
    open_file(1, "elsewhere", "other");
    callback_ = listening_at("192.0.2.1.8.1");
    callback_ident_ = 77;
    client_ = holder_ = set_up_client("the holder");
    // Its owner is confirmed.
    file_ = open_file(1, "file", "owner");
    next_ = 3;
  }
  ~Nfs40CallbacksServed() override {
    bool ended = false;
    nfs4_.wind_up([&] { ended = true; });
    loop_.drain();
    EXPECT_TRUE(ended);
    EXPECT_EQ(network_.open, 0);
    nfs4_.stop_callbacks();
  }

  static nfs::v4::cb_client4 listening_at(std::string address, std::string netid = "tcp") {
    return {nfs::v4::NFS4_CALLBACK, {std::move(netid), std::move(address)}};
  }
  nfs::v4::open_delegation4 open_again(std::uint32_t access = nfs::v4::OPEN4_SHARE_ACCESS_BOTH) {
    const Res opened =
        run({putrootfh(), lookup("data"), open_op(next_++, "file", "owner", access), getfh()});
    EXPECT_EQ(opened.status, nfs::v4::NFS4_OK);
    if (opened.status != nfs::v4::NFS4_OK) return {};
    return opened.resarray[2].opopen().resok4().delegation;
  }
  template <class Action>
  auto as_other(Action action) {
    const nfs::v4::clientid4 before = std::exchange(client_, other_);
    auto result = action();
    client_ = before;
    return result;
  }
  nfs::v4::nfsstat4 other_opens() {
    return as_other([&] { return open_raw(others_next_++, "file", "other").status; });
  }
  Res give_back(const nfs::v4::stateid4& stateid) {
    return run({putfh(file_.handle), op(nfs::v4::OP_DELEGRETURN, &Op::opdelegreturn,
                                        nfs::v4::DELEGRETURN4args{stateid})});
  }
  // The client gives back what it is asked for, at once.
  void gives_back() {
    listener_.on_recall = [this] {
      loop_.post([this] {
        std::vector<Op> operations{
            putfh(file_.handle),
            op(nfs::v4::OP_DELEGRETURN, &Op::opdelegreturn,
               nfs::v4::DELEGRETURN4args{listener_.asked.back().argarray[0].opcbrecall().stateid})};
        detach(send({"", 0, std::move(operations)}));
      });
    };
  }
  Task<void> send(nfs::v4::COMPOUND4args args) {
    rpc::Client client(channel_, nfs::ulb::nfs4(), credentials_);
    const auto result = co_await client.call<nfs::v4::NFSPROC4_COMPOUND>(args);
    EXPECT_TRUE(result.ok() && result->status == nfs::v4::NFS4_OK);
  }
  // Time passes, and both clients renew their leases.
  nfs::v4::nfsstat4 pass_and_renew(Duration time) {
    loop_.pass(time);
    renew(other_);
    const nfs::v4::nfsstat4 status = renew(holder_);
    loop_.drain();
    return status;
  }

  CallbackClient listener_{loop_, server_};
  CallbackNetwork network_{loop_, listener_.service()};
  nfs::v4::clientid4 holder_ = 0, other_ = 0;
  Opened file_;
  std::uint32_t next_ = 0, others_next_ = 3;  // seqids
};

}  // namespace stag::testing
