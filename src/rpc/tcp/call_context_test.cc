// What an operation may know of its connection over TCP: the room for its results, which connection
// it came on and when that is gone, and what a Call in the other direction may be.
#include <gtest/gtest.h>

#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/store_program.h"

namespace stag::rpc::tcp {
namespace {

using testing::store::INCREMENT;

class TcpCallContext : public ::testing::Test {
 public:
  TcpCallContext() {
    programs.add<INCREMENT>([this](CallContext& call, std::uint32_t value) -> Task<std::uint32_t> {
      results_max = call.results_max();
      connection = call.connection();
      reverse = call.reverse_channel();
      co_return value + 1;
    });
  }
  void run(Task<> (*test)(TcpCallContext&, Channel&)) {
    loop.post([&] { detach(whole(this, test)); });
    loop.run();
  }
  static Task<> whole(TcpCallContext* self, Task<> (*test)(TcpCallContext&, Channel&)) {
    auto server = TcpServer::listen(self->loop, {"127.0.0.1", 0}, self->programs);
    TcpChannel channel(self->loop, (*server)->local(), {});
    Client client(channel);
    const auto result = co_await client.call<INCREMENT>(1u);
    EXPECT_TRUE(result.ok());
    co_await test(*self, channel);
    self->reverse.reset();
    co_await channel.close();
    co_await (*server)->close();
    self->loop.stop();
  }

  net::EpollLoop loop;
  Server programs;
  std::uint64_t results_max = 0;
  std::shared_ptr<rpc::Connection> connection;
  std::shared_ptr<Channel> reverse;
};

TEST_F(TcpCallContext, has_the_room_for_results_that_a_record_has) {
  run([](TcpCallContext& test, Channel&) -> Task<> {
    EXPECT_EQ(test.results_max, (1u << 31) - 1 - oncrpc::kReplyHeaderSize);
    co_return;
  });
}

TEST_F(TcpCallContext, names_its_connection_and_says_when_that_is_gone) {
  run([](TcpCallContext& test, Channel& channel) -> Task<> {
    const std::shared_ptr<rpc::Connection> first = test.connection;
    Client client(channel);
    const auto again = co_await client.call<INCREMENT>(1u);
    EXPECT_TRUE(again.ok());
    EXPECT_EQ(test.connection->id(), first->id());
    Completion<Ok> told;
    rpc::Connection::Watch watch;
    EXPECT_TRUE(watch.start(*first, [&told] { told.complete(Ok{}); }));
    co_await channel.close();
    co_await told;
    EXPECT_TRUE(first->down());
  });
}

TEST_F(TcpCallContext, knows_what_Calls_to_the_client_may_be) {
  run([](TcpCallContext& test, Channel& channel) -> Task<> {
    const auto limits = test.reverse->limits();
    EXPECT_TRUE(limits.has_value());
    EXPECT_EQ(limits->call_max, (1u << 31) - 1);
    EXPECT_EQ(limits->reply_max, 4u << 20);
    EXPECT_FALSE(limits->chunks);
    co_await channel.close();
    while (!test.connection->down()) co_await resume_on(test.loop);
    EXPECT_FALSE(test.reverse->limits().has_value());
    EXPECT_FALSE(channel.limits().has_value());
  });
}

}  // namespace
}  // namespace stag::rpc::tcp
