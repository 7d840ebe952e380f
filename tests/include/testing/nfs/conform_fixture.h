// Our server of NFSv4 and the cases of `stag conform nfs4`, in one process and virtual time. Both
// the connection and the place where a client of version 4.0 listens carry what the server asks.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "conform/nfs4/suite.h"
#include "testing/nfs/nfs40_callbacks_fixture.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::testing {

class ConformServed : public Nfs4Served {
 protected:
  explicit ConformServed(nfs::nfs4::Nfs4Options options = {}) : Nfs4Served(std::move(options)) {}
  void SetUp() override {
    nfs4_.start_callbacks(loop_, &network_);
    channel_.origin().reverse = reverse_;
    channel_.origin().connection = connection_;
  }
  ~ConformServed() override {
    bool ended = false;
    nfs4_.wind_up([&] { ended = true; });
    loop_.drain();
    EXPECT_TRUE(ended);
    nfs4_.stop_callbacks();
  }

  // Asked over `way`.
  std::unique_ptr<conform::Suite> suite(std::uint32_t minor, rpc::Channel& way) {
    conform::nfs4::SuiteOptions options;
    options.minor = minor;
    options.path = {"data"};
    options.credentials = rpc::Credentials::sys("tests", 0, 0, {});
    options.label = "conform";
    options.callbacks = &callbacks_;
    options.make_place = [this] { return std::make_unique<Place>(network_); };
    return conform::nfs4::make_suite(&way, std::move(options), CancelToken(cancel_));
  }

 private:
  class Place final : public conform::nfs4::CallbackPlace {
   public:
    explicit Place(CallbackNetwork& network) : network_(network) {}
    bool listen(rpc::Service&) override {
      network_.reachable = true;
      network_.cut = false;
      return true;
    }
    nfs::v4::clientaddr4 where() const override { return {"tcp", "192.0.2.1.8.1"}; }
    Task<void> close() override {
      network_.reachable = false;
      network_.cut = true;
      co_return;
    }

   private:
    CallbackNetwork& network_;
  };

 protected:
  CancelSource cancel_;
  conform::nfs4::Callbacks callbacks_{loop_, {}};
  CallbackNetwork network_{loop_, callbacks_.service()};
  std::shared_ptr<LoopbackChannel> reverse_ =
      std::make_shared<LoopbackChannel>(loop_, callbacks_.service());
  const std::shared_ptr<rpc::Connection> connection_ = std::make_shared<rpc::Connection>();
};

}  // namespace stag::testing
