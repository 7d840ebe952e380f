// RPCSEC_GSS over TCP and over RPC-over-RDMA: Calls and Replies get lost, and with them their
// connections; every transmission has a sequence number of its own, and nothing runs twice.
#include <gtest/gtest.h>

#include <thread>

#include "fabric/sim/sim_fabric.h"
#include "net/loop.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/gss_world.h"
#include "testing/security_scenarios.h"

namespace stag::rpc {
namespace {

namespace store = testing::store;
using testing::GssServerWorld;
using testing::LossyService;

constexpr gss::Service kEach[] = {gss::Service::none, gss::Service::integrity,
                                  gss::Service::privacy};

struct LossyWorld : GssServerWorld {
  LossyService service{server};
};

Task<> lose_and_recover(LossyWorld& world, Client client) {
  const auto one = co_await client.call<store::INCREMENT>(1u);
  EXPECT_TRUE(one.ok() && *one == 2u);
  std::uint32_t total = 0;
  for (const auto loss : {LossyService::Loss::Call, LossyService::Loss::Reply}) {
    world.service.lose(loss, store::ADD_ONCE::number);
    const auto added = co_await client.call<store::ADD_ONCE>(5u);
    total += 5;
    EXPECT_TRUE(added.ok() && *added == total) << "a Call that ran does not run again";
    world.service.lose(loss, store::PUT::number);
    const Rope data = store::pattern(300'001, 7);
    const store::PutArgs put{.slot = 1, .data = data, .checksum = store::checksum(data)};
    const auto stored = co_await client.call<store::PUT>(put);
    EXPECT_TRUE(stored.ok() && stored->checksum == put.checksum);
    world.service.lose(loss, store::GET::number);
    const store::GetArgs get{.slot = 1, .count = 300'001};
    const auto got = co_await client.call<store::GET>(get);
    EXPECT_TRUE(got.ok() && got->data == data);
  }
  EXPECT_EQ(world.state.total, 10u);
}

// The client's context is of a server that is no more.
Task<> survive_a_restart(LossyWorld& world, Client client) {
  EXPECT_TRUE((co_await client.call<store::ADD_ONCE>(1u)).ok());
  auto next = std::make_unique<GssAuthenticator>(
      GssServerOptions{.acceptor = std::make_shared<testing::FakeAcceptor>(world.realm)});
  world.server.add(std::move(next));
  EXPECT_TRUE((co_await client.call<store::ADD_ONCE>(1u)).ok());
  EXPECT_EQ(world.state.total, 2u);
  EXPECT_EQ(world.realm->accepted, 2u);
}

// The server knows the Call that it answered, and its context no more when that comes again.
Task<> lose_the_context_with_a_reply(LossyWorld& world, Client client) {
  world.service.on_loss = [&world] {
    world.server.add(std::make_unique<GssAuthenticator>(
        GssServerOptions{.acceptor = std::make_shared<testing::FakeAcceptor>(world.realm)}));
  };
  world.service.lose(LossyService::Loss::Reply, store::ADD_ONCE::number);
  const auto added = co_await client.call<store::ADD_ONCE>(5u);
  EXPECT_TRUE(added.ok() && *added == 5u);
  EXPECT_EQ(world.state.total, 5u);
  EXPECT_EQ(world.realm->accepted, 2u);
}

// Either exchange of tokens, or the answer to it, is lost with its connection and comes again.
Task<> set_up_over_cuts(LossyWorld& world, Client client) {
  world.realm->rounds = 2;
  world.realm->knows_replays = true;
  std::uint32_t total = 0;
  for (const auto loss : {LossyService::Loss::Call, LossyService::Loss::Reply})
    for (const std::uint32_t exchange : {0u, 1u}) {
      world.server.add(std::make_unique<GssAuthenticator>(
          GssServerOptions{.acceptor = std::make_shared<testing::FakeAcceptor>(world.realm)}));
      world.service.lose(loss, 0, exchange);
      const auto added = co_await client.call<store::ADD_ONCE>(1u);
      EXPECT_TRUE(added.ok() && *added == ++total) << "exchange " << exchange;
    }
}

using Scenario = Task<> (*)(LossyWorld&, Client);

Task<> over_tcp(net::EpollLoop& loop, gss::Service protection, Scenario scenario) {
  LossyWorld world;
  tcp::ChannelOptions options;
  options.backoff_min = std::chrono::milliseconds(1);
  options.backoff_max = std::chrono::milliseconds(5);
  options.seed = 7;
  auto server = tcp::TcpServer::listen(loop, {"127.0.0.1", 0}, world.service);
  tcp::TcpChannel channel(loop, (*server)->local(), options);
  const auto security = world.security(protection);
  co_await scenario(world, Client(channel, store::kBinding, Credentials::secured(security)));
  co_await security->end(channel);
  EXPECT_EQ(world.realm->alive <= 1u, true);
  co_await channel.close();
  co_await (*server)->close();
  loop.stop();
}

Task<bool> over_rdma(fabric::SimLoop& loop, gss::Service protection, Scenario scenario) {
  fabric::SimFabric network{loop};
  LossyWorld world;
  rdma::Server server{world.service};
  const Address at = *server.listen(network, {"server", 20049});
  rdma::ChannelOptions options;
  options.seed = 7;
  rdma::Channel channel(network, at, options);
  const auto security = world.security(protection);
  co_await scenario(world, Client(channel, store::kBinding, Credentials::secured(security)));
  co_await security->end(channel);
  co_await channel.close();
  co_await server.close();
  co_return true;
}

TEST(GssTransports, sign_each_transmission_anew_and_run_nothing_twice_over_TCP) {
  for (const gss::Service service : kEach) {
    net::EpollLoop loop;
    loop.post([&] { detach(over_tcp(loop, service, lose_and_recover)); });
    loop.run();
  }
}

TEST(GssTransports, sign_each_transmission_anew_and_run_nothing_twice_over_RDMA) {
  for (const gss::Service service : kEach) {
    fabric::SimLoop loop;
    EXPECT_TRUE(loop.run(over_rdma(loop, service, lose_and_recover)));
  }
}

TEST(GssTransports, outlive_a_restart_of_the_server) {
  for (const gss::Service service : kEach) {
    net::EpollLoop tcp;
    tcp.post([&] { detach(over_tcp(tcp, service, survive_a_restart)); });
    tcp.run();
    fabric::SimLoop rdma;
    EXPECT_TRUE(rdma.run(over_rdma(rdma, service, survive_a_restart)));
  }
}

TEST(GssTransports, run_nothing_twice_whose_context_is_lost_with_its_reply) {
  for (const gss::Service service : kEach) {
    net::EpollLoop tcp;
    tcp.post([&] { detach(over_tcp(tcp, service, lose_the_context_with_a_reply)); });
    tcp.run();
    fabric::SimLoop rdma;
    EXPECT_TRUE(rdma.run(over_rdma(rdma, service, lose_the_context_with_a_reply)));
  }
}

TEST(GssTransports, set_a_context_up_though_its_connection_is_cut) {
  net::EpollLoop tcp;
  tcp.post([&] { detach(over_tcp(tcp, gss::Service::integrity, set_up_over_cuts)); });
  tcp.run();
  fabric::SimLoop rdma;
  EXPECT_TRUE(rdma.run(over_rdma(rdma, gss::Service::integrity, set_up_over_cuts)));
}

// Four clients on loops of their own, each with four contexts that it uses on two connections,
// which a server with two loops serves; long messages go to workers. The fake mechanism ends the
// process when two threads are in one context.
Task<> call_often(Channel& channel, const std::shared_ptr<ClientSecurity>& security, int& done) {
  Client client(channel, store::kBinding, Credentials::secured(security));
  const Rope data = store::pattern(60'000, 7);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_TRUE((co_await client.call<store::INCREMENT>(i)).ok());
    const store::PutArgs put{.slot = i, .data = data, .checksum = store::checksum(data)};
    const auto stored = co_await client.call<store::PUT>(put);
    EXPECT_TRUE(stored.ok()) << stored.error().message();
  }
  ++done;
}

Task<> use_contexts(net::EpollLoop& loop, GssServerWorld& world, Address at) {
  tcp::ChannelOptions options;
  options.seed = 7;
  tcp::TcpChannel one(loop, at, options), two(loop, at, options);
  int done = 0;
  std::vector<std::shared_ptr<ClientSecurity>> securities;
  TaskGroup calls;
  for (const gss::Service service : {gss::Service::none, gss::Service::integrity,
                                     gss::Service::privacy, gss::Service::privacy}) {
    securities.push_back(world.security(service));
    for (Channel* channel : std::initializer_list<Channel*>{&one, &two, &one})
      calls.add(call_often(*channel, securities.back(), done));
  }
  co_await calls.join();
  for (const auto& security : securities) co_await security->end(one);
  EXPECT_EQ(done, 12);
  co_await one.close();
  co_await two.close();
  loop.stop();
}

Task<> end_server(tcp::TcpServer& server, net::EpollLoop& loop, net::EpollLoop& other) {
  co_await server.close();
  other.stop();
  loop.stop();
}

TEST(GssTransports, use_a_context_by_one_thread_at_a_time) {
  GssServerWorld world;
  net::EpollLoop first, second;
  auto server = tcp::TcpServer::listen(first, {"127.0.0.1", 0}, world.server, {&first, &second});
  const Address at = (*server)->local();
  std::vector<std::thread> clients;
  std::thread serving([&] { first.run(); }), too([&] { second.run(); });
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&world, at] {
      net::EpollLoop loop;
      loop.post([&] { detach(use_contexts(loop, world, at)); });
      loop.run();
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(world.authenticator->contexts().established(), 0u);
  first.post([&] { detach(end_server(**server, first, second)); });
  serving.join();
  too.join();
}

}  // namespace
}  // namespace stag::rpc
