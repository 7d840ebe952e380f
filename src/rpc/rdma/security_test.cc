// Call security over RPC-over-RDMA (testing/security_scenarios.h), in virtual time; and what only
// this transport has: a Call made again because its Reply chunk was too small, chunks of its own
// for a replay, what sealing does to reduction, and what an operation may know of all that.
#include <gtest/gtest.h>

#include "fabric/sim/sim_fabric.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "testing/security_scenarios.h"

namespace stag::rpc::rdma {
namespace {

using testing::SecuredStore;

// Promises less than it returns, and that it may be asked again.
constexpr std::array kSurprisingTable{bind<testing::store::REVERSE>({}, {}, [](const std::string&) {
                                        return ReplyBound{20'000, {}};
                                      }).retry_short_replies()};

class RdmaSecurity : public ::testing::TestWithParam<bool> {
 protected:
  RdmaSecurity() {
    const Address at = *server.listen(network, {"server", 20049});
    ChannelOptions options;
    options.seed = 7;
    options.transfer_stats = &moved;
    channel.emplace(network, at, options);
  }
  ~RdmaSecurity() override {
    loop.run(closing(*channel));
    loop.run(closing(server));
  }
  template <class T>
  static Task<bool> closing(T& object) {
    co_await object.close();
    co_return true;
  }

  fabric::SimLoop loop;
  fabric::SimFabric network{loop};
  SecuredStore store{GetParam()};
  Server server{store.service};
  TransferStats moved;
  std::optional<Channel> channel;
};

TEST_P(RdmaSecurity, signs_each_transmission_anew_and_runs_no_call_twice) {
  EXPECT_TRUE(loop.run(testing::loses_calls_and_replies(store, *channel, 300'001)));
  // RFC 8166 8.2.2.3: what is sealed goes whole, by Long Call and Long Reply.
  EXPECT_EQ(moved.read_chunks == 0, GetParam());
  EXPECT_EQ(moved.write_chunks == 0, GetParam());
  EXPECT_EQ(moved.position_zero_chunks != 0, GetParam());
  EXPECT_EQ(moved.reply_chunks != 0, GetParam());
}

TEST_P(RdmaSecurity, refuses_a_transmission_that_repeats_another) {
  EXPECT_TRUE(loop.run(testing::refuses_what_is_not_signed_again(store, *channel)));
}

TEST_P(RdmaSecurity, lets_an_authentication_outlive_its_connection) {
  EXPECT_TRUE(loop.run(testing::authenticates_longer_than_the_connection_lives(store, *channel)));
}

TEST_P(RdmaSecurity, signs_a_call_anew_that_is_made_again_with_a_larger_Reply_chunk) {
  Client client = store.client(*channel, Binding(kSurprisingTable));
  const std::string text(60'000, 'x');
  const auto result = loop.run(client.call<testing::store::REVERSE>(text));
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->size(), text.size());
  EXPECT_EQ(store.authenticator->repeated, 0u);
  EXPECT_EQ(store.security->transmissions, 3u) << "20 000, 40 000 and 80 000 bytes of room";
}

INSTANTIATE_TEST_SUITE_P(SignedAndSealed, RdmaSecurity, ::testing::Bool());

}  // namespace
}  // namespace stag::rpc::rdma
