#include <gtest/gtest.h>

#include <list>

#include "base/task_group.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/failing_program.h"
#include "testing/store_service.h"

namespace stag::rpc::tcp {
namespace {

using namespace testing::store;
using namespace std::chrono_literals;
using net::EpollLoop;

void run(EpollLoop& loop, Task<> task) {
  const auto body = [](EpollLoop* on, Task<> inner) -> Task<> {
    co_await std::move(inner);
    on->stop();
  };
  loop.post([&] { detach(body(&loop, std::move(task))); });
  loop.run();
}

std::unique_ptr<TcpServer> listening(EpollLoop& loop, Service& service,
                                     const ServerOptions& options = {},
                                     const Address& at = {"127.0.0.1", 0}) {
  auto server = TcpServer::listen(loop, at, service, {}, options);
  EXPECT_TRUE(server.ok());
  return std::move(*server);
}

ChannelOptions quick() {
  ChannelOptions options;
  options.backoff_min = 1ms;
  options.backoff_max = 5ms;
  options.seed = 7;
  return options;
}

// A client and the store program over loopback TCP.
struct World {
  explicit World(const ServerOptions& server_options = {}, const char* host = "127.0.0.1") {
    programs.add(make_program(state));
    server = listening(loop, programs, server_options, {host, 0});
    channel = std::make_unique<TcpChannel>(loop, server->local(), quick());
    client.emplace(*channel, kBinding);
  }
  void run_test(Task<> (*test)(World&)) { run(loop, whole(this, test)); }
  static Task<> whole(World* world, Task<> (*test)(World&)) {
    co_await test(*world);
    co_await world->channel->close();
    co_await world->server->close();
  }

  EpollLoop loop;
  State state;
  Server programs;
  std::unique_ptr<TcpServer> server;
  std::unique_ptr<TcpChannel> channel;
  std::optional<Client> client;
};

TEST(TcpChannel, carries_calls_small_and_large) {
  World world;
  world.run_test([](World& w) -> Task<> {
    auto one = co_await w.client->call<INCREMENT>(41u);
    EXPECT_TRUE(one.ok() && *one == 42u);
    for (std::uint32_t size : {0u, 3u, 4096u, 65'531u, 1u << 20, 3'000'001u}) {
      const Rope data = pattern(size, size);
      const PutArgs put{.slot = 1, .data = data, .checksum = checksum(data)};
      auto stored = co_await w.client->call<PUT>(put);
      EXPECT_TRUE(stored.ok() && stored->checksum == checksum(data)) << size;
      const GetArgs get{.slot = 1, .count = size};
      auto back = co_await w.client->call<GET>(get);
      EXPECT_TRUE(back.ok() && back->data == data) << size;
    }
  });
}

TEST(TcpChannel, carries_calls_over_IPv6) {
  World world({}, "::1");
  world.run_test([](World& w) -> Task<> {
    auto pong = co_await w.client->ping(kProgram, kVersion);
    EXPECT_TRUE(pong.ok());
  });
}

Task<> increment(Client& client, std::uint32_t value, std::uint32_t& good) {
  auto result = co_await client.call<INCREMENT>(value);
  if (result.ok() && *result == value + 1) ++good;
}

TEST(TcpChannel, has_many_calls_in_flight_on_one_connection) {
  World world;
  world.run_test([](World& w) -> Task<> {
    TaskGroup calls;
    std::uint32_t good = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) calls.add(increment(*w.client, i, good));
    EXPECT_EQ(good, 0u);
    co_await calls.join();
    EXPECT_EQ(good, 1000u);
    EXPECT_EQ(w.server->connections(), 1u);
  });
}

TEST(TcpChannel, reports_a_server_that_is_not_there) {
  EpollLoop loop;
  Address nowhere;
  {
    auto listener = net::TcpListener::listen(loop, {"127.0.0.1", 0});
    nowhere = listener->local();
  }
  run(loop, [](EpollLoop* on, Address to) -> Task<> {
    TcpConnector connector(*on, quick());
    auto channel = co_await connector.connect(to, {});
    EXPECT_FALSE(channel.ok());
    if (channel.ok()) co_return;
    EXPECT_EQ(channel.error().reason, Reason::ConnectionRefused);
    EXPECT_NE(channel.error().message().find(to_string(to)), std::string::npos);
  }(&loop, nowhere));
}

TEST(TcpChannel, gives_the_reason_of_the_lost_connection_when_time_runs_out) {
  EpollLoop loop;
  Address nowhere;
  {
    auto listener = net::TcpListener::listen(loop, {"127.0.0.1", 0});
    nowhere = listener->local();
  }
  run(loop, [](EpollLoop* on, Address to) -> Task<> {
    TcpChannel channel(*on, to, quick());
    Client client(channel, kBinding);
    CallOptions options;
    options.timeout = 20ms;
    auto result = co_await client.call<INCREMENT>(1u, options);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.error().reason, Reason::ConnectionRefused);
    EXPECT_FALSE(result.error().sent);
    co_await channel.close();
  }(&loop, nowhere));
}

// As the RDMA port of a server does: it hangs up at the first bytes.
struct HangingUp {
  explicit HangingUp(EpollLoop& on) : loop(on) {
    listener.emplace(*net::TcpListener::listen(loop, {"127.0.0.1", 0}));
    listener->start([this](net::AcceptedSocket accepted) {
      ++connections;
      sockets.push_back(*net::TcpSocket::adopt(loop, std::move(accepted)));
      net::TcpSocket& socket = sockets.back();
      socket.when_readable([&socket] { socket.close(); });
    });
  }
  EpollLoop& loop;
  std::optional<net::TcpListener> listener;
  std::list<net::TcpSocket> sockets;
  int connections = 0;
};

TEST(TcpChannel, gives_up_on_a_port_that_only_hangs_up) {
  EpollLoop loop;
  HangingUp port(loop);
  run(loop, [](EpollLoop* on, HangingUp* there) -> Task<> {
    TcpChannel channel(*on, there->listener->local(), quick());
    Client client(channel, kBinding);
    CallOptions options;
    options.timeout = 60s;
    for (int call = 0; call < 2; ++call) {
      const auto result = co_await client.call<INCREMENT>(1u, options);
      EXPECT_EQ(result.ok() ? Reason::None : result.error().reason, Reason::RpcUnanswered);
      EXPECT_EQ(there->connections, 4 * (call + 1)) << "one such connection may be chance";
    }
    co_await channel.close();
  }(&loop, &port));
}

TEST(TcpChannel, comes_back_to_a_server_that_turned_it_away) {
  EpollLoop loop;
  auto port = std::make_unique<HangingUp>(loop);
  Server programs;
  State state;
  programs.add(make_program(state));
  run(loop, [](EpollLoop* on, std::unique_ptr<HangingUp>* there, Server* served) -> Task<> {
    const Address at = (*there)->listener->local();
    TcpChannel channel(*on, at, quick());
    Client client(channel, kBinding);
    const auto refused = co_await client.call<INCREMENT>(1u);
    EXPECT_FALSE(refused.ok());
    there->reset();
    const auto server = listening(*on, *served, {}, at);
    const auto taken = co_await client.call<INCREMENT>(1u);
    EXPECT_TRUE(taken.ok()) << taken.error().message();
    co_await channel.close();
    co_await server->close();
  }(&loop, &port, &programs));
}

TEST(TcpChannel, may_be_destroyed_as_soon_as_its_last_call_was_given_up) {
  EpollLoop loop;
  HangingUp port(loop);
  run(loop, [](EpollLoop* on, HangingUp* there) -> Task<> {
    auto channel = std::make_unique<TcpChannel>(*on, there->listener->local(), quick());
    Client client(*channel, kBinding);
    EXPECT_FALSE((co_await client.call<INCREMENT>(1u)).ok());
    co_await channel->close();
    channel.reset();
  }(&loop, &port));
}

// Holds every Call until it is told to let go.
class Holding final : public Service {
 public:
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    ++held;
    most = std::max(most, held);
    Completion<Ok> wait;
    waiting.push_back(&wait);
    if (on_held) on_held();
    co_await wait;
    --held;
    xdr::Encoder encoder;
    oncrpc::ReplyHeader header;
    header.xid = load_be<std::uint32_t>(call.payload.data());
    oncrpc::encode(encoder, header);
    if (reply_bytes > 0) encoder.fixed_opaque(pattern(reply_bytes, 1).flatten().bytes());
    OutgoingReply reply;
    reply.stream = std::move(encoder).finish();
    co_return reply;
  }
  void let_go() {
    while (!waiting.empty()) {
      Completion<Ok>* next = waiting.back();
      waiting.pop_back();
      next->complete(Ok{});
    }
  }

  std::size_t held = 0;
  std::size_t most = 0;
  std::uint32_t reply_bytes = 0;
  std::vector<Completion<Ok>*> waiting;
  UniqueFunction<void()> on_held;
};

struct Held {
  explicit Held(const ServerOptions& options = {}) {
    server = listening(loop, service, options);
    channel = std::make_unique<TcpChannel>(loop, server->local(), quick());
    client.emplace(*channel);
  }
  void run_test(Task<> (*test)(Held&)) { run(loop, whole(this, test)); }
  static Task<> whole(Held* world, Task<> (*test)(Held&)) {
    co_await test(*world);
    co_await world->channel->close();
    world->service.let_go();
    co_await world->server->close();
  }
  EpollLoop loop;
  Holding service;
  std::unique_ptr<TcpServer> server;
  std::unique_ptr<TcpChannel> channel;
  std::optional<Client> client;
};

TEST(TcpChannel, gives_up_a_call_whose_time_is_over) {
  Held world;
  world.run_test([](Held& w) -> Task<> {
    CallOptions options;
    options.timeout = 10ms;
    auto result = co_await w.client->ping(1, 1, options);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.error().reason, Reason::TimedOut);
  });
}

Task<> ping_into(Client& client, CallOptions options, std::optional<CallResult<Ok>>& result) {
  result = co_await client.ping(1, 1, options);
}

TEST(TcpChannel, gives_up_a_call_that_is_cancelled) {
  Held world;
  world.run_test([](Held& w) -> Task<> {
    CancelSource source;
    CallOptions options;
    options.cancel = source;
    std::optional<CallResult<Ok>> result;
    TaskGroup calls;
    Completion<Ok> arrived;
    w.service.on_held = [&arrived] { arrived.complete(Ok{}); };
    calls.add(ping_into(*w.client, options, result));
    co_await arrived;
    EXPECT_FALSE(result.has_value());
    source.cancel();
    co_await calls.join();
    EXPECT_FALSE(result->ok());
    EXPECT_EQ(result->error().reason, Reason::Cancelled);
  });
}

// The server is slow, not gone: what else it executes would be executed again.
TEST(TcpChannel, goes_on_with_other_calls_when_the_time_of_one_is_over) {
  Held world;
  world.run_test([](Held& w) -> Task<> {
    std::optional<CallResult<Ok>> slow;
    TaskGroup calls;
    Completion<Ok> arrived;
    std::uint32_t executed = 0;
    w.service.on_held = [&] {
      if (++executed == 1) arrived.complete(Ok{});
      if (executed > 2) w.service.let_go();
    };
    calls.add(ping_into(*w.client, {}, slow));
    co_await arrived;
    CallOptions hasty;
    hasty.timeout = 10ms;
    const auto late = co_await w.client->ping(1, 1, hasty);
    EXPECT_EQ(late.error().reason, Reason::TimedOut);
    EXPECT_TRUE(late.error().sent);
    w.service.let_go();
    co_await calls.join();
    EXPECT_TRUE(slow->ok());
    EXPECT_EQ(executed, 2u);
    EXPECT_EQ(w.channel->connections_lost(), 0u);
  });
}

TEST(TcpChannel, ends_calls_in_progress_when_it_is_closed) {
  Held world;
  world.run_test([](Held& w) -> Task<> {
    std::optional<CallResult<Ok>> result;
    TaskGroup calls;
    calls.add(ping_into(*w.client, {}, result));
    co_await w.channel->close();
    co_await calls.join();
    EXPECT_FALSE(result->ok());
    EXPECT_EQ(result->error().reason, Reason::Shutdown);
    auto later = co_await w.client->ping(1, 1);
    EXPECT_EQ(later.error().reason, Reason::Shutdown);
  });
}

Task<> bulk_into(Client& client, Rope data, std::size_t& done) {
  const PutArgs args{.slot = 1, .data = data, .checksum = 0};
  auto result = co_await client.call<PUT>(args);
  ++done;
  EXPECT_FALSE(result.ok()) << "the holding service answers without results";
}

TEST(TcpServer, serves_no_more_calls_at_a_time_than_allowed_and_none_is_lost) {
  ServerOptions options;
  options.max_calls = 3;
  Held world(options);
  world.run_test([](Held& w) -> Task<> {
    TaskGroup calls;
    std::size_t done = 0;
    const Rope data = pattern(200'000, 1);  // more than is read at once
    Completion<Ok> full;
    w.service.on_held = [&] {
      if (w.service.held == 3 && !full.completed()) full.complete(Ok{});
    };
    for (int i = 0; i < 20; ++i) calls.add(bulk_into(*w.client, data, done));
    co_await full;
    while (calls.running() > 0) {
      w.service.let_go();
      co_await resume_on(w.loop);
    }
    EXPECT_EQ(done, 20u);
    EXPECT_LE(w.service.most, 4u);
  });
}

TEST(TcpServer, closes_connections_above_its_limit) {
  ServerOptions options;
  options.max_connections = 1;
  World world(options);
  world.run_test([](World& w) -> Task<> {
    const std::uint64_t before = reason_counters().of(Reason::RpcTooManyConnections);
    auto pong = co_await w.client->ping(kProgram, kVersion);
    EXPECT_TRUE(pong.ok());
    TcpChannel second(w.loop, w.server->local(), quick());
    Client client(second);
    CallOptions call;
    call.timeout = 50ms;
    auto refused = co_await client.ping(kProgram, kVersion, call);
    EXPECT_FALSE(refused.ok());
    EXPECT_GT(reason_counters().of(Reason::RpcTooManyConnections), before);
    co_await second.close();
  });
}

// Whether a second connection is served, while the world's own has had its answer.
Task<bool> serves_another(World& w) {
  auto pong = co_await w.client->ping(kProgram, kVersion);
  EXPECT_TRUE(pong.ok());
  TcpChannel second(w.loop, w.server->local(), quick());
  Client client(second);
  CallOptions call;
  call.timeout = 50ms;
  const auto answer = co_await client.ping(kProgram, kVersion, call);
  co_await second.close();
  co_return answer.ok();
}

TEST(TcpServer, leaves_places_for_others_when_one_address_has_had_its_own) {
  ServerOptions options;
  options.max_connections_per_peer = 1;
  World world(options);
  world.run_test([](World& w) -> Task<> {
    const std::uint64_t before = reason_counters().of(Reason::TooManyConnectionsOfPeer);
    const bool served = co_await serves_another(w);
    EXPECT_FALSE(served);
    EXPECT_GT(reason_counters().of(Reason::TooManyConnectionsOfPeer), before);
    EXPECT_EQ(w.server->connections(), 1u);
  });
}

Task<> expect_served(World& w) {
  const auto answer = co_await w.client->ping(kProgram, kVersion);
  EXPECT_TRUE(answer.ok());
}
Task<> expect_turned_away(World& w) {
  const std::uint64_t before = reason_counters().of(Reason::PeerNotAllowed);
  CallOptions call;
  call.timeout = 50ms;
  const auto answer = co_await w.client->ping(kProgram, kVersion, call);
  EXPECT_FALSE(answer.ok());
  EXPECT_GT(reason_counters().of(Reason::PeerNotAllowed), before);
}

TEST(TcpServer, takes_connections_only_from_where_it_is_allowed_to) {
  ServerOptions options;
  options.allow = {*IpNetwork::parse("192.0.2.0/24"), *IpNetwork::parse("127.0.0.0/8")};
  World friends(options);
  friends.run_test(expect_served);
  options.allow.pop_back();
  World strangers(options);
  strangers.run_test(expect_turned_away);
}

TEST(TcpServer, waits_for_calls_in_progress_when_it_is_closed_and_drops_their_replies) {
  EpollLoop loop;
  Holding service;
  auto server = listening(loop, service);
  run(loop, [](EpollLoop* on, TcpServer* closing, Holding* holding) -> Task<> {
    TcpChannel channel(*on, closing->local(), quick());
    Client client(channel);
    std::optional<CallResult<Ok>> result;
    TaskGroup tasks;
    Completion<Ok> arrived;
    holding->on_held = [&arrived] { arrived.complete(Ok{}); };
    tasks.add(ping_into(client, {}, result));
    co_await arrived;
    TaskGroup closings;
    closings.add(closing->close());
    for (int i = 0; i < 10; ++i) co_await resume_on(*on);
    EXPECT_EQ(closings.running(), 1u);
    EXPECT_EQ(holding->held, 1u);
    holding->let_go();
    co_await closings.join();
    EXPECT_FALSE(result.has_value()) << "nobody answered";
    co_await channel.close();
    co_await tasks.join();
  }(&loop, server.get(), &service));
}

struct AskBack : INCREMENT {
  static constexpr std::uint32_t program = 0x20000079;
};

TEST(TcpServer, calls_its_client_back_on_the_same_connection) {
  World world;
  world.programs.add<AskBack>([](CallContext& call, std::uint32_t value) -> Task<std::uint32_t> {
    std::shared_ptr<Channel> back = call.reverse_channel();
    EXPECT_NE(back, nullptr);
    Client client(*back, kBinding);
    auto answer = co_await client.call<INCREMENT>(value);
    EXPECT_TRUE(answer.ok());
    co_return answer.ok() ? *answer * 10 : 0;
  });
  Server reverse;
  State state;
  reverse.add(make_program(state));
  world.channel->serve_reverse(reverse);
  world.run_test([](World& w) -> Task<> {
    auto result = co_await w.client->call<AskBack>(4u);
    EXPECT_TRUE(result.ok() && *result == 50u);
  });
}

TEST(TcpServer, keeps_the_connection_of_a_client_that_answers_no_call_in_time) {
  World world;
  Holding reverse;
  std::uint32_t executed = 0;
  world.programs.add<AskBack>([&](CallContext& call, std::uint32_t value) -> Task<std::uint32_t> {
    if (++executed > 1) co_return value;
    Client client(*call.reverse_channel(), kBinding);
    CallOptions hasty;
    hasty.timeout = 10ms;
    EXPECT_EQ((co_await client.call<INCREMENT>(value, hasty)).error().reason, Reason::TimedOut);
    reverse.let_go();
    co_return value;
  });
  world.channel->serve_reverse(reverse);
  world.run_test([](World& w) -> Task<> {
    EXPECT_TRUE((co_await w.client->call<AskBack>(4u)).ok());
    EXPECT_EQ(w.channel->connections_lost(), 0u);
  });
  EXPECT_EQ(executed, 1u);
}

struct AddBack : INCREMENT {
  static constexpr std::uint32_t program = 0x2000007b;
};

Task<std::uint32_t> add_at_client(CallContext& call, std::uint32_t value) {
  const std::shared_ptr<Channel> back = call.reverse_channel();
  Client client(*back, kBinding);
  const auto sum = co_await client.call<ADD_ONCE>(value);
  co_return sum.ok() ? *sum : 0;
}

// A client on a connection of its own that executes ADD_ONCE for its server, five by five.
std::uint32_t add_five(World& world, Server& reverse) {
  world.channel = std::make_unique<TcpChannel>(world.loop, world.server->local(), quick());
  world.channel->serve_reverse(reverse);
  std::uint32_t sum = 0;
  run(world.loop, [](TcpChannel* channel, std::uint32_t* to) -> Task<> {
    Client client(*channel, kBinding);
    const auto result = co_await client.call<AddBack>(5u);
    *to = result.ok() ? *result : 0;
    co_await channel->close();
  }(world.channel.get(), &sum));
  return sum;
}

// Each has random numbers of its own: the same XID again is a matter of one in 2^32.
TEST(TcpServer, calls_a_client_by_other_XIDs_on_the_next_connection_and_after_a_restart) {
  Server reverse;
  State state;
  reverse.add(make_program(state));
  for (std::uint32_t start = 0; start < 2; ++start) {
    World world;
    world.programs.add<AddBack>(add_at_client);
    EXPECT_EQ(add_five(world, reverse), 10 * start + 5);
    EXPECT_EQ(add_five(world, reverse), 10 * start + 10) << "on another connection";
    run(world.loop, [](World* w) -> Task<> { co_await w->server->close(); }(&world));
  }
  EXPECT_EQ(state.executed, 4u);
}

struct FailBack : INCREMENT {
  static constexpr std::uint32_t program = 0x2000007a;
};

TEST(TcpServer, is_told_when_the_handler_of_its_client_throws) {
  World world;
  world.programs.add<FailBack>([](CallContext& call, std::uint32_t how) -> Task<std::uint32_t> {
    Client client(*call.reverse_channel());
    auto answer = co_await client.call<testing::FAIL>(how);
    EXPECT_FALSE(answer.ok());
    co_return static_cast<std::uint32_t>(answer.error().status.accept);
  });
  Server reverse;
  std::uint32_t executed = 0;
  reverse.add(testing::failing_program(executed));
  world.channel->serve_reverse(reverse);
  world.run_test([](World& w) -> Task<> {
    for (std::uint32_t how = 1; how < static_cast<std::uint32_t>(testing::Failing::Count); ++how) {
      auto result = co_await w.client->call<FailBack>(how);
      EXPECT_TRUE(result.ok());
      EXPECT_EQ(*result, static_cast<std::uint32_t>(oncrpc::AcceptStat::SYSTEM_ERR));
    }
  });
}

}  // namespace
}  // namespace stag::rpc::tcp
