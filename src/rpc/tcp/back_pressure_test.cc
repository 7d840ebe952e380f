// A server's connection stops reading while its client takes no Replies, and while it has all the
// Calls it may have. Whatever ends that, and in whichever order, reading goes on.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <utility>

#include "rpc/channel.h"
#include "testing/sim_tcp_client.h"

namespace stag::rpc::tcp {
namespace {

using testing::Answering;
using testing::SimClient;

constexpr std::size_t kPlenty = 1 << 20;

TEST(TcpBackPressure, reads_a_call_that_came_while_a_reply_was_about_to_leave) {
  SimClient client(kPlenty);
  client.call();
  client.settle();
  client.call();            // its arrival is told first,
  client.service.let_go();  // then the Reply to the first one leaves in one write
  client.settle();
  EXPECT_EQ(client.service.started, 2u);
}

TEST(TcpBackPressure, reads_a_call_that_came_after_a_reply_was_about_to_leave) {
  SimClient client(kPlenty);
  client.call();
  client.settle();
  client.service.let_go();
  client.call();
  client.settle();
  EXPECT_EQ(client.service.started, 2u);
}

TEST(TcpBackPressure, reads_a_call_that_came_while_replies_leave_in_many_writes) {
  SimClient client(100);
  client.call();
  client.settle();
  client.call();
  client.service.let_go();
  client.settle();
  EXPECT_EQ(client.service.started, 1u);
  while (client.wire.take(100) > 0) client.settle();
  EXPECT_EQ(client.service.started, 2u);
  EXPECT_EQ(client.wire.taken(), client.service.reply_size());
}

TEST(TcpBackPressure, goes_on_when_a_place_for_a_call_is_free_before_the_client_takes_replies) {
  ServerOptions options = SimClient::small();
  options.max_calls = 1;
  SimClient client(100, options);
  client.call(3);
  client.settle();
  EXPECT_EQ(client.service.started, 1u);
  client.service.let_go();
  client.call();
  client.settle();
  EXPECT_EQ(client.service.started, 1u) << "the client has not taken the first Reply";
  client.service.hold = false;
  while (client.wire.take(100) > 0) client.settle();
  EXPECT_EQ(client.service.answered, 4u);
}

Task<> ask_back(Answering& service, CancelToken cancel, bool& ended) {
  const std::shared_ptr<Channel> back = service.origin->reverse.lock();
  const Rope data = testing::store::pattern(2 * SimClient::kLessThanAReply, 3);
  xdr::Encoder encoder;
  CallMessage message;
  message.xid = back->next_xid();
  oncrpc::CallHeader header;
  header.xid = message.xid;
  oncrpc::encode(encoder, header);
  encoder.fixed_opaque(data.flatten().bytes());
  message.stream = std::move(encoder).finish();
  message.cancel = cancel;
  static_cast<void>(co_await back->call(message));
  ended = true;
}

TEST(TcpBackPressure, goes_on_when_a_call_to_the_client_is_given_up_before_it_left) {
  constexpr std::size_t kQuarter = (4 + 24 + 4096) / 4;
  SimClient client(kQuarter);
  client.call();
  client.settle();
  client.service.let_go();
  client.settle();
  CancelSource cancel;
  bool ended = false;
  detach(ask_back(client.service, cancel, ended));
  // The system has the last quarter of the Reply; of the Call behind it nothing has left.
  for (int i = 0; i < 3; ++i) {
    client.wire.take(kQuarter);
    client.settle();
  }
  client.call();
  client.settle();
  EXPECT_EQ(client.service.started, 1u) << "the Call to the client is more than may wait";
  cancel.cancel();
  client.settle();
  EXPECT_TRUE(ended);
  EXPECT_EQ(client.service.started, 2u) << "the client need not take anything more";
}

// Small Calls come by the thousand in what the system has read; other clients of the loop must not
// wait for all of them.
TEST(TcpBackPressure, serves_a_part_of_many_small_calls_in_a_turn) {
  ServerOptions options = SimClient::small();
  options.stream.queued = 0;
  SimClient client(~std::size_t{0} / 2, options);
  client.service.hold = false;
  client.service.body = testing::store::pattern(16, 1).flatten();
  constexpr std::uint32_t kCalls = 20'000;
  client.call(kCalls);
  std::size_t most = 0;
  for (std::size_t before = 0; client.loop.step(); before = client.service.answered)
    most = std::max(most, client.service.answered - before);
  EXPECT_EQ(client.service.answered, kCalls);
  constexpr std::size_t kOfOneRead = (64 << 10) / 44 + 1;  // the shortest Calls there are
  EXPECT_LE(most, kOfOneRead);
}

// Whatever happens in whichever order: once the client has taken everything, every Call was served.
TEST(TcpBackPressure, serves_every_call_whatever_the_order_of_events) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    ServerOptions options = SimClient::small();
    options.max_calls = 1 + random() % 3;
    options.stream.queued = random() % 2 == 0 ? SimClient::kLessThanAReply : 3 * 4124;
    SimClient client(random() % 2 == 0 ? 700 : 20'000, options);
    for (int i = 0; i < 60; ++i) {
      switch (random() % 5) {
        case 0:
          client.call(1 + random() % 4);
          break;
        case 1:
          client.service.let_one_go();
          break;
        case 2:
          client.service.let_go();
          break;
        case 3:
          client.wire.take(random() % 6000);
          break;
        default:
          std::uint32_t steps = random() % 4;
          client.loop.run_until([&steps] { return steps-- == 0; }, Duration::zero());
      }
    }
    const auto done = [&client] {
      return client.wire.taken() + client.service.started + client.service.answered;
    };
    for (std::size_t before = ~std::size_t{0}; before != done();) {
      before = done();
      client.service.let_go();
      client.settle();
      client.wire.take(1 << 20);
      client.settle();
    }
    ASSERT_TRUE(client.open());
    ASSERT_EQ(client.service.answered, client.calls()) << "seed " << seed;
    ASSERT_EQ(client.wire.taken(), client.calls() * client.service.reply_size());
  }
}

// The same for short Replies and budgets that are soon used up, by this client or by others.
TEST(TcpBackPressure, serves_every_short_call_whatever_the_order_of_events) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    ServerOptions options;
    options.max_calls = 1 + random() % 40;
    options.max_bytes_all = 100'000 << random() % 4;
    options.max_bytes = 30'000 << random() % 6;
    options.stream.stall = Duration::zero();
    SimClient client(700, options);
    client.service.body = testing::store::pattern(16, 1).flatten();
    const auto other = std::make_shared<Account>(client.budget, "other", client.loop, kPlenty);
    std::uint64_t others = 0;
    for (int i = 0; i < 100; ++i) {
      switch (random() % 6) {
        case 0:
          client.call(1 + random() % 60);
          break;
        case 1:
          client.service.let_go();
          break;
        case 2:
          client.wire.take(random() % 6000);
          break;
        case 3:
          other->take(50'000);
          others += 50'000;
          break;
        case 4:
          other->give(std::exchange(others, 0));
          break;
        default:
          std::uint32_t steps = random() % 4;
          client.loop.run_until([&steps] { return steps-- == 0; }, Duration::zero());
      }
    }
    const bool kept = random() % 2 == 0;
    if (!kept) other->give(std::exchange(others, 0));
    const auto done = [&client] {
      return client.wire.taken() + client.service.started + client.service.answered;
    };
    for (std::size_t before = ~std::size_t{0}; before != done();) {
      before = done();
      client.service.let_go();
      client.settle();
      client.wire.take(1 << 20);
      client.settle();
    }
    ASSERT_EQ(client.service.answered, client.calls()) << "seed " << seed;
    ASSERT_EQ(client.wire.taken(), client.calls() * client.service.reply_size());
    other->give(others);
    client.settle();
    ASSERT_EQ(client.budget->used(), 0u);
  }
}

// The most Calls that one turn of a connection has started, of many small ones.
std::size_t most_in_a_turn(bool crowded) {
  SimClient client(std::size_t{64} << 20, ServerOptions{});
  client.service.hold = false;
  client.service.body = testing::store::pattern(16, 1).flatten();
  if (crowded) client.wire.crowd();
  client.call(400);
  std::size_t most = 0;
  for (std::size_t before = 0; client.loop.step(); before = client.service.started)
    most = std::max(most, client.service.started - before);
  EXPECT_EQ(client.service.answered, 400u);
  return most;
}

TEST(TcpTurns, serve_a_few_calls_at_a_time_where_others_wait) {
  EXPECT_EQ(most_in_a_turn(false), 400u);
  EXPECT_LE(most_in_a_turn(true), 30u);
}

// As a record of its own each short one would take a block of memory, many times its size.
TEST(TcpBackPressure, leaves_what_it_has_read_behind_a_call_that_waits_as_it_came) {
  ServerOptions options;
  options.max_calls = 1;
  SimClient client(1 << 20, options);
  Rope bytes = SimClient::framed_call(1);
  bytes.append(SimClient::framed_call(2));
  constexpr std::array<std::byte, 4> kNoRecordMark{std::byte{0xff}, std::byte{0xff},
                                                   std::byte{0xff}, std::byte{0xff}};
  bytes.append(Rope::copy_of(kNoRecordMark));
  client.wire.arrive(bytes);
  client.settle();
  EXPECT_TRUE(client.open()) << "nobody has looked at it";
  client.service.let_go();
  client.settle();
  client.service.let_go();
  client.settle();
  EXPECT_EQ(client.service.answered, 2u);
  EXPECT_FALSE(client.open());
}

}  // namespace
}  // namespace stag::rpc::tcp
