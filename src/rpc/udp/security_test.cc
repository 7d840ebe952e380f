// Call security over UDP (testing/security_scenarios.h), where every transmission after the first
// is a retransmission.
#include <gtest/gtest.h>

#include "rpc/udp/channel.h"
#include "rpc/udp/server.h"
#include "testing/security_scenarios.h"

namespace stag::rpc::udp {
namespace {

using testing::SecuredStore;

class UdpSecurity : public ::testing::TestWithParam<bool> {
 protected:
  using Scenario = Task<bool> (*)(SecuredStore&, Channel&);

  void run(Scenario scenario) {
    loop.post([&] { detach(whole(this, scenario)); });
    loop.run();
  }
  static Task<> whole(UdpSecurity* self, Scenario scenario) {
    ChannelOptions options;
    options.retransmit_min = std::chrono::milliseconds(20);
    options.retransmit_max = std::chrono::milliseconds(100);
    options.seed = 7;
    auto socket = net::UdpSocket::open(self->loop, {"127.0.0.1", 0});
    auto server = UdpServer::serve(self->loop, *std::move(socket), self->store.service);
    UdpChannel channel(self->loop, server->local(), options);
    const auto opened = co_await channel.open({});
    EXPECT_TRUE(opened.ok());
    co_await scenario(self->store, channel);
    co_await channel.close();
    co_await server->close();
    self->loop.stop();
  }

  net::EpollLoop loop;
  SecuredStore store{GetParam()};
};

// Replies are small, as for any sender of datagrams that has not proven its address.
TEST_P(UdpSecurity, signs_each_transmission_anew_and_runs_no_call_twice) {
  run([](SecuredStore& store, Channel& channel) {
    return testing::loses_calls_and_replies(store, channel, 300);
  });
}

TEST_P(UdpSecurity, refuses_a_transmission_that_repeats_another) {
  run(testing::refuses_what_is_not_signed_again);
}

INSTANTIATE_TEST_SUITE_P(SignedAndSealed, UdpSecurity, ::testing::Bool());

}  // namespace
}  // namespace stag::rpc::udp
