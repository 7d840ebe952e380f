// What wait_on() and its like do where there is no memory for the Task, and ProxyChannels where
// there is none on either loop.
#include <gtest/gtest.h>

#include <thread>

#include "endpoint/loops.h"
#include "rpc/client.h"
#include "rpc/proxy_channel.h"
#include "rpc/server.h"
#include "testing/direct_channel.h"
#include "testing/failing_new.h"
#include "testing/manual_loop.h"
#include "testing/store_service.h"

namespace stag::endpoint {
namespace {

Task<int> answer() {
  co_return 42;
}
Task<int> throwing() {
  throw std::runtime_error("no answer");
  co_return 0;
}

TEST(WaitOn, throws_where_there_is_no_memory_to_begin_the_Task) {
  Loops loops;
  for (std::size_t failing = 1; failing <= 2; ++failing) {
    EXPECT_THROW(wait_on(loops.at(0),
                         [failing] {
                           testing::allocations_until_failure = failing;
                           return answer();
                         }),
                 std::bad_alloc);
  }
  EXPECT_EQ(wait_on(loops.at(0), answer), 42);
}

TEST(WaitOn, throws_what_the_Task_throws) {
  Loops loops;
  EXPECT_THROW(wait_on(loops.at(0), throwing), std::runtime_error);
}

TEST(FinishOn, begins_again_until_there_is_memory) {
  Loops loops;
  int begun = 0;
  bool ended = false;
  finish_on(loops.at(0), [&] {
    if (++begun < 3) throw std::bad_alloc();
    const auto end = [](bool& flag) -> Task<int> {
      flag = true;
      co_return 0;
    };
    return end(ended);
  });
  EXPECT_EQ(begun, 3);
  EXPECT_TRUE(ended);
}

TEST(FinishOn, runs_a_function_that_returns_nothing_when_there_is_memory) {
  Loops loops;
  int runs = 0;
  testing::allocations_until_failure = 1;
  finish_on(loops.at(0), [&] { ++runs; });
  EXPECT_EQ(testing::allocations_until_failure, 0u);
  EXPECT_EQ(runs, 1);
}

TEST(RunOn, throws_what_the_function_throws) {
  Loops loops;
  EXPECT_THROW(run_on(loops.at(0), [] { throw std::runtime_error("nothing"); }),
               std::runtime_error);
  EXPECT_EQ(run_on(loops.at(0), [] { return 1; }), 1);
}

// Lends the Reply, as transports do.
class Lending final : public rpc::Channel {
 public:
  Lending(Loop& loop, rpc::Service& service, int& open)
      : Channel(1), channel_(loop, service), open_(open) {
    ++open_;
  }
  ~Lending() override { --open_; }
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    auto reply = co_await channel_.call(message);
    if (reply) lent_ = std::exchange(reply->payload, {});
    if (reply) reply->payload = Buffer::borrow(lent_.bytes());
    co_return reply;
  }
  Task<void> close() override { return channel_.close(); }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return channel_.loop(); }
  rpc::TransportKind kind() const override { return channel_.kind(); }
  std::string where() const override { return "a server with a name that is long"; }

 private:
  testing::DirectChannel channel_;
  Buffer lent_;
  int& open_;
};

// Two loops that this thread turns, and a server.
struct ProxiedWorld final : rpc::Connector {
  using Connected = Result<std::unique_ptr<rpc::Channel>, rpc::CallError>;
  ProxiedWorld() { server.add(testing::store::make_program(state)); }
  Loop& loop() override { return far; }
  Task<Connected> connect(Address, CancelToken) override {
    co_return std::unique_ptr<rpc::Channel>(std::make_unique<Lending>(far, server, open));
  }
  static Task<void> connected(rpc::ProxyConnector& connector, std::unique_ptr<rpc::Channel>& to) {
    while (to == nullptr) {
      try {
        Address server{"server", 1};
        Connected made = co_await connector.connect(std::move(server), {});
        to = *std::move(made);
      } catch (const std::bad_alloc&) {
      }
    }
  }
  static Task<void> called(rpc::Channel& channel, Reason& ended) {
    try {
      rpc::Client client(channel, testing::store::kBinding);
      const auto result = co_await client.call<testing::store::INCREMENT>(1);
      ended = result.ok() ? Reason::None : result.error().reason;
    } catch (const std::bad_alloc&) {
      ended = Reason::OutOfMemory;
    }
  }
  static Task<void> closed(rpc::Channel& channel, bool& done) {
    while (!done) {
      try {
        co_await channel.close();
        done = true;
      } catch (const std::bad_alloc&) {
      }
    }
  }
  void turn() {
    for (int i = 0; i < 20; ++i) {
      near.drain();
      far.drain();
    }
  }

  testing::ManualLoop near, far;
  testing::store::State state;
  rpc::Server server;
  int open = 0;
};

// From the `failing`th allocation of its own on. Whether that was reached.
bool proxied_without_memory(std::size_t failing) {
  ProxiedWorld world;
  rpc::ProxyConnector connector(world.near, world);
  std::unique_ptr<rpc::Channel> channel;
  Reason ended = Reason::Shutdown;
  bool done = false;
  Task<void> connecting = world.connected(connector, channel);
  testing::allocations_until_failure = failing;
  detach(std::move(connecting));
  world.turn();
  EXPECT_NE(channel, nullptr);
  if (channel == nullptr) return false;
  // Frames of its own may not be had: that is no call.
  try {
    detach(world.called(*channel, ended));
  } catch (const std::bad_alloc&) {
    ended = Reason::OutOfMemory;
  }
  world.turn();
  EXPECT_TRUE(ended == Reason::None || ended == Reason::OutOfMemory) << info(ended).text;
  while (!done) {
    try {
      detach(world.closed(*channel, done));
    } catch (const std::bad_alloc&) {
    }
    world.turn();
  }
  channel.reset();
  EXPECT_EQ(world.open, 0);
  return std::exchange(testing::allocations_until_failure, 0) == 0;
}

// On threads of their own, which have kept no memory from before.
TEST(ProxiedChannel, ends_all_that_was_begun_whichever_allocation_fails) {
  bool reached = true;
  std::size_t failing = 1;
  for (; reached && failing < 1000; ++failing)
    std::thread([&] { reached = proxied_without_memory(failing); }).join();
  EXPECT_FALSE(reached);
  EXPECT_GT(failing, 10u);
}

}  // namespace
}  // namespace stag::endpoint
