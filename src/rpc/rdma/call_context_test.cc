// What an operation may know of its connection over RPC-over-RDMA: the room for its results, which
// connection it came on and when that is gone, and what a Call in the other direction may be.
#include <gtest/gtest.h>

#include <deque>

#include "base/completion.h"
#include "fabric/sim/sim_fabric.h"
#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "rpcrdma/wire.h"
#include "testing/store_program.h"

namespace stag::rpc::rdma {
namespace {

using testing::store::INCREMENT;
using testing::store::kProgram;
using testing::store::kVersion;

// Takes and returns a number; its binding promises as many bytes of results as the argument says.
constexpr std::array kPromisingTable{bind<INCREMENT>({}, {}, [](const std::uint32_t& size) {
  return ReplyBound{size, {}};
})};

// Passes Calls on, but keeps those for later that come while `holds` is set.
class LateService final : public Service {
 public:
  explicit LateService(Service& next) : next_(next) {}
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    if (holds) co_await held.emplace_back();
    co_return co_await next_.serve(call);
  }

  bool holds = false;
  std::deque<Completion<Ok>> held;

 private:
  Service& next_;
};

class RdmaCallContext : public ::testing::Test {
 protected:
  RdmaCallContext() {
    programs.add<INCREMENT>([this](CallContext& call, std::uint32_t value) -> Task<std::uint32_t> {
      results_max = call.results_max();
      connection = call.connection();
      reverse = call.reverse_channel();
      co_return value + 1;
    });
    const Address at = *server.listen(network, {"server", 20049});
    ChannelOptions options;
    options.seed = 7;
    options.probe_after = Duration::zero();
    channel.emplace(network, at, options);
    channel->serve_reverse(programs);
  }
  ~RdmaCallContext() override {
    reverse.reset();
    loop.run(closing(*channel));
    loop.run(closing(server));
  }
  template <class T>
  static Task<bool> closing(T& object) {
    co_await object.close();
    co_return true;
  }
  void call(std::uint32_t size = 4) {
    Client client(*channel, Binding(kPromisingTable));
    ASSERT_TRUE(loop.run(client.call<INCREMENT>(size)).ok());
  }

  static Task<> increment(Channel& channel, std::uint32_t& number) {
    Client client(channel, Binding(kPromisingTable));
    const auto result = co_await client.call<INCREMENT>(number);
    number = result ? *result : 0;
  }

  fabric::SimLoop loop;
  fabric::SimFabric network{loop};
  rpc::Server programs;
  LateService late{programs};
  Server server{late};
  std::optional<Channel> channel;
  std::uint64_t results_max = 0;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<rpc::Channel> reverse;
};

TEST_F(RdmaCallContext, has_the_room_for_results_that_an_inline_Reply_has) {
  call();
  EXPECT_EQ(results_max, kUsualInlineSize - rpcrdma::kMinHeaderSize - oncrpc::kReplyHeaderSize);
}

TEST_F(RdmaCallContext, has_the_room_for_results_that_a_Reply_chunk_has) {
  call(100'000);
  EXPECT_EQ(results_max, 100'000u);
}

TEST_F(RdmaCallContext, leaves_a_Call_its_arguments_while_others_come) {
  call();
  late.holds = true;
  std::uint32_t first = 7, second = 21;
  detach(increment(*channel, first));
  detach(increment(*channel, second));
  loop.run_for(std::chrono::seconds(1));
  ASSERT_EQ(late.held.size(), 2u);
  for (Completion<Ok>& each : late.held) each.complete(Ok{});
  loop.run_for(std::chrono::seconds(1));
  EXPECT_EQ(first, 8u);
  EXPECT_EQ(second, 22u);
}

TEST_F(RdmaCallContext, names_its_connection_and_says_when_that_is_gone) {
  call();
  const std::shared_ptr<Connection> first = connection;
  ASSERT_NE(first, nullptr);
  call();
  EXPECT_EQ(connection->id(), first->id());
  int told = 0;
  Connection::Watch watch;
  ASSERT_TRUE(watch.start(*first, [&told] { ++told; }));
  network.lose_connections();
  call();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(first->down());
  EXPECT_NE(connection->id(), first->id());
  EXPECT_FALSE(connection->down());
}

TEST_F(RdmaCallContext, knows_what_Calls_to_the_client_may_be) {
  call();
  const auto before = reverse->limits();
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->calls, 1u) << "RFC 8166 3.3.3: until the first Reply";
  EXPECT_EQ(before->call_max, kUsualInlineSize - rpcrdma::kMinHeaderSize);
  EXPECT_EQ(before->reply_max, kUsualInlineSize - rpcrdma::kMinHeaderSize);
  EXPECT_TRUE(before->chunks);
  Client back(*reverse);
  ASSERT_TRUE(loop.run(back.ping(kProgram, kVersion)).ok());
  EXPECT_EQ(reverse->limits()->calls, 16u) << "what the client grants";
  ASSERT_TRUE(channel->limits().has_value());
  EXPECT_EQ(channel->limits()->calls, 64u) << "what the client asks for";
  loop.run(closing(*channel));
  EXPECT_FALSE(channel->limits().has_value());
  loop.run_for(std::chrono::seconds(1));  // The server has noticed it.
  EXPECT_FALSE(reverse->limits().has_value());
}

}  // namespace
}  // namespace stag::rpc::rdma
