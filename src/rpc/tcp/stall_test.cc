// A client may be slow for as long as it likes, and stand still for as long as the stall limit
// says.
#include <gtest/gtest.h>

#include "net/loop.h"
#include "rpc/tcp/server.h"
#include "testing/sim_tcp_client.h"
#include "testing/user_timeout.h"

namespace stag::rpc::tcp {
namespace {

using namespace std::chrono_literals;
using testing::SimClient;

constexpr std::size_t kMegabyte = 1 << 20;

// Answers at once.
SimClient& prompt(SimClient& client, std::uint32_t reply_bytes) {
  client.service.hold = false;
  client.service.body = testing::store::pattern(reply_bytes, 1).flatten();
  return client;
}

TEST(TcpStall, a_client_on_a_slow_link_gets_all_it_asked_for) {
  SimClient client(4 * kMegabyte, ServerOptions{});
  prompt(client, kMegabyte).call(64);
  const std::size_t all = 64 * client.service.reply_size();
  for (int tenths = 0; tenths < 1200 && client.wire.taken() < all; ++tenths) {
    client.loop.run_for(100ms);
    client.wire.take(62'500);  // 5 Mbit/s
  }
  EXPECT_TRUE(client.open());
  EXPECT_EQ(client.wire.taken(), all);
}

// The system asks for more only when a good part of its buffer is free; that takes a while.
TEST(TcpStall, bytes_that_the_client_acknowledges_are_progress_though_nothing_is_written) {
  SimClient client(8 * kMegabyte, ServerOptions{});
  prompt(client, kMegabyte).call(16);
  for (int seconds = 0; seconds < 300; ++seconds) {
    client.loop.run_for(1s);
    client.wire.take(1000);
  }
  EXPECT_TRUE(client.open());
}

TEST(TcpStall, a_client_that_takes_nothing_loses_its_connection) {
  SimClient client(kMegabyte, ServerOptions{});
  prompt(client, kMegabyte).call(2);
  client.loop.run_for(59s);
  EXPECT_TRUE(client.open());
  client.loop.run_for(61s);
  EXPECT_FALSE(client.open());
}

TEST(TcpStall, a_client_that_takes_nothing_is_not_saved_by_what_it_sends) {
  SimClient client(kMegabyte, ServerOptions{});
  prompt(client, kMegabyte).call(2);
  client.settle();
  client.service.body = {};
  for (int seconds = 0; seconds < 121; ++seconds) {
    client.call();
    client.loop.run_for(1s);
  }
  EXPECT_FALSE(client.open());
}

TEST(TcpStall, the_time_begins_when_there_is_something_to_take) {
  SimClient client(kMegabyte, ServerOptions{});
  prompt(client, 2 * kMegabyte).call();
  client.loop.run_for(50s);
  while (client.wire.take(kMegabyte) > 0) client.settle();
  client.loop.run_for(55s);
  client.call();  // when the first watch has 15 s left
  client.loop.run_for(50s);
  EXPECT_TRUE(client.open());
  client.loop.run_for(80s);
  EXPECT_FALSE(client.open());
}

// Its host has vanished, or its program stands still, with a window that is just too small.
TEST(TcpStall, a_client_that_acknowledges_nothing_loses_its_connection_though_all_is_written) {
  const std::uint64_t before = reason_counters().of(Reason::RpcPeerTooSlow);
  SimClient client(4 * kMegabyte, ServerOptions{});
  prompt(client, kMegabyte).call();
  client.loop.run_for(59s);
  EXPECT_TRUE(client.open());
  client.loop.run_for(61s);
  EXPECT_FALSE(client.open());
  EXPECT_EQ(reason_counters().of(Reason::RpcPeerTooSlow), before + 1);
}

TEST(TcpStall, a_client_that_acknowledges_nothing_is_not_saved_by_calls_whose_answers_are_written) {
  SimClient client(4 * kMegabyte, ServerOptions{});
  prompt(client, kMegabyte).call();
  client.settle();
  client.service.body = {};
  for (int seconds = 0; seconds < 181; ++seconds) {
    client.call();
    client.loop.run_for(1s);
  }
  EXPECT_FALSE(client.open());
}

TEST(TcpStall, a_client_that_acknowledges_what_is_written_keeps_its_connection) {
  SimClient client(4 * kMegabyte, ServerOptions{});
  prompt(client, kMegabyte).call();
  for (int half_minutes = 0; half_minutes < 40; ++half_minutes) {
    client.loop.run_for(30s);
    client.wire.take(1);
  }
  client.wire.take(4 * kMegabyte);
  client.loop.run_for(600s);
  EXPECT_TRUE(client.open());
}

// To the system a window that is closed is a peer that has vanished, whatever it acknowledges.
TEST(TcpStall, the_system_cuts_no_client_before_the_limit_does) {
  for (const Duration limit : {Duration(0s), Duration(60s), Duration(600s)}) {
    ServerOptions options;
    options.stream.stall = limit;
    net::EpollLoop loop;
    testing::Answering service;
    service.hold = false;
    auto server = *TcpServer::listen(loop, {"127.0.0.1", 0}, service, {}, options);
    std::optional<int> user_timeout;
    const auto body = [](net::EpollLoop* on, TcpServer* to, std::optional<int>* found) -> Task<> {
      auto socket = co_await net::connect(*on, to->local());
      static_cast<void>(co_await socket->write_all(SimClient::framed_call(1)));
      std::array<std::byte, 4> some;
      static_cast<void>(co_await socket->read_some(some));
      *found = testing::user_timeout_towards(socket->local());
      socket->close();
      co_await to->close();
      on->stop();
    };
    loop.post([&] { detach(body(&loop, server.get(), &user_timeout)); });
    loop.run();
    EXPECT_EQ(user_timeout, 0) << std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  }
}

// It could not go on while nothing was read of it.
TEST(TcpStall, a_record_has_its_time_from_when_it_is_read_again) {
  SimClient client(100);
  client.call();
  client.settle();
  const Rope record = SimClient::framed_call(2);
  client.wire.arrive(record.slice(0, 10));
  client.settle();
  client.service.let_go();  // more than the client takes at once: nothing is read
  for (int seconds = 0; seconds < 70; ++seconds) {
    client.loop.run_for(1s);
    client.wire.take(40);
  }
  while (client.wire.take(100) > 0) client.settle();
  client.wire.arrive(record.slice(10, 10));
  client.loop.run_for(1s);
  EXPECT_TRUE(client.open());
  client.wire.arrive(record.slice(20, record.size() - 20));
  client.settle();
  EXPECT_EQ(client.service.started, 2u);
}

TEST(TcpStall, a_record_that_trickles_loses_the_connection) {
  SimClient client(kMegabyte, ServerOptions{});
  const Rope record = SimClient::framed_call(1);
  for (std::size_t i = 0; i + 1 < record.size() && client.open(); ++i) {
    client.wire.arrive(record.slice(i, 1));
    client.loop.run_for(2s);
  }
  EXPECT_FALSE(client.open());
}

}  // namespace
}  // namespace stag::rpc::tcp
