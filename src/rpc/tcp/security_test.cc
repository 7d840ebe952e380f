// Call security over TCP (testing/security_scenarios.h).
#include <gtest/gtest.h>

#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/security_scenarios.h"

namespace stag::rpc::tcp {
namespace {

using testing::SecuredStore;

class TcpSecurity : public ::testing::TestWithParam<bool> {
 protected:
  using Scenario = Task<bool> (*)(SecuredStore&, Channel&);

  void run(Scenario scenario) {
    loop.post([&] { detach(whole(this, scenario)); });
    loop.run();
  }
  static Task<> whole(TcpSecurity* self, Scenario scenario) {
    ChannelOptions options;
    options.backoff_min = std::chrono::milliseconds(1);
    options.backoff_max = std::chrono::milliseconds(5);
    options.seed = 7;
    auto server = TcpServer::listen(self->loop, {"127.0.0.1", 0}, self->store.service);
    TcpChannel channel(self->loop, (*server)->local(), options);
    co_await scenario(self->store, channel);
    co_await channel.close();
    co_await (*server)->close();
    self->loop.stop();
  }

  net::EpollLoop loop;
  SecuredStore store{GetParam()};
};

TEST_P(TcpSecurity, signs_each_transmission_anew_and_runs_no_call_twice) {
  run([](SecuredStore& store, Channel& channel) {
    return testing::loses_calls_and_replies(store, channel, 300'001);
  });
}

TEST_P(TcpSecurity, refuses_a_transmission_that_repeats_another) {
  run(testing::refuses_what_is_not_signed_again);
}

TEST_P(TcpSecurity, lets_an_authentication_outlive_its_connection) {
  run(testing::authenticates_longer_than_the_connection_lives);
}

INSTANTIATE_TEST_SUITE_P(SignedAndSealed, TcpSecurity, ::testing::Bool());

}  // namespace
}  // namespace stag::rpc::tcp
