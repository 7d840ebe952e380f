#include <gtest/gtest.h>

#include <thread>

#include "endpoint/client.h"
#include "endpoint/connector.h"
#include "endpoint/listener.h"
#include "endpoint/software.h"
#include "fabric/verbs/stub/stub_network.h"
#include "rpc/server.h"
#include "testing/failing_program.h"
#include "testing/gss_world.h"
#include "testing/proves.h"
#include "testing/scarce.h"
#include "testing/store_service.h"

namespace stag::endpoint {
namespace {

using namespace testing::store;
using namespace std::chrono_literals;

ListenOptions listen_on(Transport transport, std::shared_ptr<Loops> loops = nullptr) {
  ListenOptions options;
  options.transport = transport;
  options.loops = std::move(loops);
  return options;
}

ConnectOptions connect_by(Transport transport) {
  ConnectOptions options;
  options.connector.transport = transport;
  options.binding = kBinding;
  return options;
}

// How calls travel: RDMA by software or by a (stub of a) device.
struct Way {
  Transport transport;
  FabricKind fabric = FabricKind::Iwarp;
};

class Endpoint : public ::testing::TestWithParam<Way> {
 protected:
  Endpoint() { server_.add(make_program(state_)); }
  ListenOptions listen_options(std::shared_ptr<Loops> loops = nullptr) const {
    ListenOptions options = listen_on(GetParam().transport, std::move(loops));
    options.fabric = GetParam().fabric;
    options.verbs.functions = devices_.functions();
    return options;
  }
  ConnectOptions connect_options() const {
    ConnectOptions options = connect_by(GetParam().transport);
    options.connector.fabric = GetParam().fabric;
    options.connector.verbs.functions = devices_.functions();
    return options;
  }
  Listener listening(std::shared_ptr<Loops> loops = nullptr, const char* host = "127.0.0.1") {
    auto listener = listen(server_, {host, 0}, listen_options(std::move(loops)));
    EXPECT_TRUE(listener.ok()) << info(listener.error()).text;
    return *std::move(listener);
  }
  Client connected(const Address& to) {
    auto client = connect(to, connect_options());
    EXPECT_TRUE(client.ok()) << client.error().message();
    return *std::move(client);
  }

  fabric::stub::StubNetwork devices_{{fabric::stub::rxe_like()}};
  State state_;
  rpc::Server server_;
};

TEST_P(Endpoint, calls_without_a_coroutine_in_sight) {
  Listener listener = listening();
  Client client = connected(listener.address());
  auto result = client.call<INCREMENT>(41);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(*result, 42u);
  EXPECT_TRUE(client.ping(kProgram, kVersion).ok());
}

TEST_P(Endpoint, moves_bulk_of_every_size_both_ways) {
  Listener listener = listening();
  Client client = connected(listener.address());
  for (std::uint32_t size : {0u, 1u, 1000u, 70'001u, 1u << 20}) {
    const Rope data = pattern(size, size);
    const PutArgs put{.slot = 1, .data = data, .checksum = checksum(data)};
    auto stored = client.call<PUT>(put);
    ASSERT_TRUE(stored.ok()) << stored.error().message();
    EXPECT_EQ(stored->checksum, checksum(data));
    std::vector<std::byte> memory(size);
    const std::array<rpc::ResultBuffer, 1> result_buffers{
        rpc::ResultBuffer{item::get_data, memory}};
    rpc::CallOptions options;
    options.result_buffers = result_buffers;
    const GetArgs get{.slot = 1, .count = size};
    auto back = client.call<GET>(get, options);
    ASSERT_TRUE(back.ok()) << back.error().message();
    rpc::copy_into(back->data, memory);
    EXPECT_EQ(Rope::borrow(memory), data) << size;
    const std::string text(size, 'a');
    auto reversed = client.call<REVERSE>(text + "b");
    ASSERT_TRUE(reversed.ok()) << reversed.error().message();
    EXPECT_EQ(*reversed, "b" + text);
  }
}

// More than a device offers in one chunk.
constexpr std::array kMuchRoom{rpc::bind<INCREMENT>({}, {}, [](const std::uint32_t&) {
  rpc::ReplyBound bound;
  bound.payload_max = 64 << 20;
  return bound;
})};
constexpr rpc::Binding kMuchRoomBinding{kMuchRoom};

TEST_P(Endpoint, has_a_short_Reply_whatever_room_there_is_for_it) {
  Listener listener = listening();
  ConnectOptions options = connect_options();
  options.binding = kMuchRoomBinding;
  auto client = connect(listener.address(), options);
  ASSERT_TRUE(client.ok()) << client.error().message();
  const auto result = client->call<INCREMENT>(1);
  EXPECT_TRUE(result.ok()) << result.error().message();
}

TEST_P(Endpoint, has_short_results_whatever_room_there_is_for_them) {
  Listener listener = listening();
  Client client = connected(listener.address());
  const Rope data = pattern(5, 1);
  ASSERT_TRUE(client.call<PUT>(PutArgs{.slot = 1, .data = data, .checksum = checksum(data)}).ok());
  const auto back = client.call<GET>(GetArgs{.slot = 1, .count = 64 << 20});
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->data, data);
}

TEST_P(Endpoint, serves_many_threads_on_many_loops) {
  Listener listener = listening(std::make_shared<Loops>(3));
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  Client shared = connected(listener.address());
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Client own = connected(listener.address());
      for (std::uint32_t n = 0; n < 50; ++n) {
        auto one = own.call<INCREMENT>(n);
        auto two = shared.call<INCREMENT>(n);
        if (one.ok() && two.ok() && *one == n + 1 && *two == n + 1) ++good;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
}

TEST_P(Endpoint, survives_handlers_that_throw) {
  std::uint32_t executed = 0;
  server_.add(testing::failing_program(executed));
  Listener listener = listening();
  Client client = connected(listener.address());
  std::uint32_t calls = 0;
  for (std::uint32_t how = 1; how < static_cast<std::uint32_t>(testing::Failing::Count); ++how) {
    const auto failed = client.call<testing::FAIL>(how);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().status, oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR));
    EXPECT_EQ(executed, ++calls) << "the client does not repeat the call by itself";
    EXPECT_FALSE(client.call<testing::FAIL_ONCE>(how).ok());
    EXPECT_EQ(executed, ++calls);
    EXPECT_TRUE(client.call<INCREMENT>(1).ok()) << "the connection goes on";
  }
}

TEST_P(Endpoint, ends_connections_from_where_clients_may_not_connect_any_more) {
  Listener listener = listening();
  Client client = connected(listener.address());
  EXPECT_TRUE(client.ping(kProgram, kVersion).ok());
  listener.allow({*IpNetwork::parse("127.0.0.0/8")});
  EXPECT_TRUE(client.ping(kProgram, kVersion).ok());
  const std::uint64_t before = reason_counters().of(Reason::PeerNotAllowed);
  listener.allow({*IpNetwork::parse("192.0.2.0/24")});
  rpc::CallOptions options;
  options.timeout = 50ms;
  // Each loop ends its own connections when it gets to that.
  bool served = true;
  for (int i = 0; i < 10'000 && served; ++i) served = client.ping(kProgram, kVersion, options).ok();
  EXPECT_FALSE(served);
  EXPECT_GT(reason_counters().of(Reason::PeerNotAllowed), before);
  listener.allow({});
  EXPECT_TRUE(connected(listener.address()).ping(kProgram, kVersion).ok());
}

TEST_P(Endpoint, changes_limits_for_connections_that_come_then) {
  Listener listener = listening();
  Client client = connected(listener.address());
  const auto takes = [](Client& by, const Rope& data) {
    const auto stored = by.call<PUT>({.slot = 1, .data = data, .checksum = checksum(data)});
    return stored.ok();
  };
  const Rope data = pattern(1 << 20, 1);
  EXPECT_TRUE(takes(client, data));
  listener.limit_chunks((1 << 20) - 1);
  EXPECT_TRUE(takes(client, data));
  {
    Client second = connected(listener.address());
    EXPECT_EQ(takes(second, data), GetParam().transport == Transport::Tcp) << "which has no chunks";
  }
  listener.limit_connections(1, 1);
  rpc::CallOptions options;
  options.timeout = 50ms;
  auto refused = connect(listener.address(), connect_options());
  EXPECT_FALSE(refused.ok() && refused->ping(kProgram, kVersion, options).ok());
  EXPECT_TRUE(takes(client, data));
  listener.limit_connections(8, 8);
  EXPECT_TRUE(connected(listener.address()).ping(kProgram, kVersion).ok());
}

TEST_P(Endpoint, works_over_IPv6) {
  Listener listener = listening(nullptr, "::1");
  Client client = connected(listener.address());
  EXPECT_TRUE(client.ping(kProgram, kVersion).ok());
}

TEST_P(Endpoint, says_where_nobody_listens) {
  Address nowhere;
  {
    Listener listener = listening();
    nowhere = listener.address();
  }
  auto client = connect(nowhere, connect_options());
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().reason, Reason::ConnectionRefused);
  EXPECT_NE(client.error().message().find(to_string(nowhere)), std::string::npos);
}

TEST_P(Endpoint, listens_nowhere_if_its_host_is_empty) {
  EXPECT_EQ(listen(server_, {"", 0}, listen_options()).error(), Reason::HostNotFound);
}

TEST_P(Endpoint, says_that_a_port_is_taken) {
  Listener listener = listening();
  auto second = listen(server_, listener.address(), listen_options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error(), Reason::AddressInUse);
}

TEST_P(Endpoint, ends_in_either_order) {
  std::optional<Listener> listener(listening());
  Client client = connected(listener->address());
  EXPECT_TRUE(client.ping(kProgram, kVersion).ok());
  listener.reset();
  rpc::CallOptions options;
  options.timeout = 50ms;
  EXPECT_FALSE(client.ping(kProgram, kVersion, options).ok());
}

struct Slow : INCREMENT {
  static constexpr std::uint32_t program = 0x2000007a;
};

Task<std::uint32_t> slowly(Loop& loop, std::promise<void>& begun, std::atomic<bool>& ended,
                           std::uint32_t value) {
  begun.set_value();
  co_await sleep_for(loop, 60ms);
  ended = true;
  co_return value;
}

TEST_P(Endpoint, waits_for_calls_in_progress_before_its_threads_end) {
  std::atomic<bool> ended{false};
  std::promise<void> begun;
  server_.add<Slow>([&](rpc::CallContext& call, std::uint32_t value) {
    return slowly(call.loop(), begun, ended, value);
  });
  std::optional<Listener> listener(listening());
  Client client = connected(listener->address());
  std::thread caller([&] {
    rpc::CallOptions options;
    options.timeout = 200ms;
    static_cast<void>(client.call<Slow>(1, options));
  });
  begun.get_future().wait();
  listener.reset();
  EXPECT_TRUE(ended);
  caller.join();
}

TEST_P(Endpoint, waits_for_calls_in_progress_also_where_the_program_has_its_loops) {
  std::atomic<bool> ended{false};
  std::promise<void> begun;
  server_.add<Slow>([&](rpc::CallContext& call, std::uint32_t value) {
    return slowly(call.loop(), begun, ended, value);
  });
  const auto loops = std::make_shared<Loops>(2);
  std::optional<Listener> first(listening(loops)), second(listening(loops));
  Client client = connected(first->address());
  std::thread caller([&] {
    rpc::CallOptions options;
    options.timeout = 200ms;
    static_cast<void>(client.call<Slow>(1, options));
  });
  begun.get_future().wait();
  second.reset();
  EXPECT_FALSE(ended) << "another Listener is there";
  first.reset();
  EXPECT_TRUE(ended);
  caller.join();
}

// Waits until it is let go.
struct Held : INCREMENT {
  static constexpr std::uint32_t program = 0x2000007c;
};

Task<std::uint32_t> held(Loop& loop, std::promise<void>& begun, const std::atomic<bool>& let_go,
                         std::uint32_t value) {
  begun.set_value();
  while (!let_go) co_await sleep_for(loop, 1ms);
  co_return value;
}

TEST_P(Endpoint, does_not_wait_for_calls_of_other_loops) {
  std::atomic<bool> let_go{false};
  std::promise<void> begun, ended;
  server_.add<Held>([&](rpc::CallContext& call, std::uint32_t value) {
    return held(call.loop(), begun, let_go, value);
  });
  std::optional<Listener> first(listening()), second(listening());
  Client client = connected(second->address());
  std::thread caller([&] { static_cast<void>(client.call<Held>(1)); });
  begun.get_future().wait();
  std::thread ending([&] {
    first.reset();
    ended.set_value();
  });
  EXPECT_EQ(ended.get_future().wait_for(10s), std::future_status::ready);
  let_go = true;
  ending.join();
  caller.join();
}

TEST(EndpointLoops, that_cannot_be_had_are_an_error_and_keep_nothing) {
  if (testing::sanitizer_needs_descriptors()) GTEST_SKIP() << "the sanitizer needs descriptors";
  rpc::Server server;
  {
    const testing::FewFiles few(5);  // a loop has two
    EXPECT_EQ(Loops::start(3).error(), Reason::TooManyOpenFiles);
    EXPECT_TRUE(Loops::start(2).ok());
  }
  const testing::NoThreads none;
  EXPECT_EQ(Loops::start().error(), Reason::TooManyThreads);
  EXPECT_EQ(listen(server, {"127.0.0.1", 0}).error(), Reason::TooManyThreads);
  EXPECT_EQ(listen(server, ::dup(0)).error(), Reason::TooManyThreads);
  EXPECT_EQ(connect({"127.0.0.1", 1}).error().reason, Reason::TooManyThreads);
}

struct AskBack : INCREMENT {
  static constexpr std::uint32_t program = 0x2000007b;
};

Task<std::uint32_t> ask_back(rpc::CallContext& call, std::uint32_t value) {
  std::shared_ptr<rpc::Channel> back = call.reverse_channel();
  EXPECT_NE(back, nullptr);
  rpc::Client client(*back, kBinding);
  auto answer = co_await client.call<INCREMENT>(value);
  EXPECT_TRUE(answer.ok()) << answer.error().message();
  co_return answer.ok() ? *answer * 10 : 0;
}

TEST_P(Endpoint, serves_what_the_server_calls_back_on_the_same_connection) {
  server_.add<AskBack>(ask_back);
  State state;
  rpc::Server reverse;
  reverse.add(make_program(state));
  Listener listener = listening();
  ConnectOptions options = connect_options();
  options.reverse = &reverse;
  auto client = connect(listener.address(), options);
  ASSERT_TRUE(client.ok()) << client.error().message();
  auto result = client->call<AskBack>(4);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(*result, 50u);
}

// Asks its client back and does not wait for the answer.
Task<std::uint32_t> ask_back_later(rpc::CallContext& call, std::uint32_t value) {
  detach([](std::shared_ptr<rpc::Channel> back, std::uint32_t what) -> Task<> {
    rpc::Client client(*back, kBinding);
    static_cast<void>(co_await client.call<Slow>(what));
  }(call.reverse_channel(), value));
  co_return value;
}

TEST_P(Endpoint, waits_for_what_the_server_calls_back_before_its_client_goes) {
  server_.add<AskBack>(ask_back_later);
  Listener listener = listening();
  std::atomic<bool> ended{false};
  std::promise<void> begun;
  rpc::Server reverse;
  reverse.add<Slow>([&](rpc::CallContext& call, std::uint32_t value) {
    return slowly(call.loop(), begun, ended, value);
  });
  ConnectOptions options = connect_options();
  options.reverse = &reverse;
  {
    auto client = connect(listener.address(), options);
    ASSERT_TRUE(client.ok()) << client.error().message();
    ASSERT_TRUE(client->call<AskBack>(4).ok());
    begun.get_future().wait();
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(reverse.active_calls(), 0u);
}

// RFC 2203 5.4. The server would keep it for as long as the ticket is good.
TEST_P(Endpoint, tells_the_server_that_it_uses_a_security_context_no_longer) {
  testing::GssServerWorld world;
  const auto loops = std::make_shared<Loops>();
  auto listener = listen(world.server, {"127.0.0.1", 0}, listen_options(loops));
  ASSERT_TRUE(listener.ok());
  ConnectOptions options = connect_options();
  options.loops = loops;
  options.credentials = rpc::Credentials::secured(world.security(gss::Service::integrity));
  for (int clients = 0; clients < 2; ++clients) {
    auto client = connect(listener->address(), options);
    ASSERT_TRUE(client.ok()) << client.error().message();
    ASSERT_TRUE(client->call<INCREMENT>(1).ok());
    EXPECT_EQ(world.authenticator->contexts().established(), 1u);
  }
  EXPECT_EQ(world.authenticator->contexts().established(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Transports, Endpoint,
                         ::testing::Values(Way{Transport::Rdma}, Way{Transport::Tcp},
                                           Way{Transport::Rdma, FabricKind::Verbs}),
                         [](const auto& way) {
                           if (way.param.transport == Transport::Tcp) return "tcp";
                           return way.param.fabric == FabricKind::Iwarp ? "rdma" : "verbs";
                         });

TEST(Endpoints, serve_several_transports_of_one_server_on_the_same_threads) {
  State state;
  rpc::Server server;
  server.add(make_program(state));
  auto loops = std::make_shared<Loops>(2);
  auto rdma = listen(server, {"127.0.0.1", 0}, listen_on(Transport::Rdma, loops));
  auto tcp = listen(server, {"127.0.0.1", 0}, listen_on(Transport::Tcp, loops));
  ASSERT_TRUE(rdma.ok() && tcp.ok());
  auto writer = connect(rdma->address(), connect_by(Transport::Rdma));
  auto reader = connect(tcp->address(), connect_by(Transport::Tcp));
  ASSERT_TRUE(writer.ok() && reader.ok());
  const Rope data = pattern(100'000, 1);
  const PutArgs put{.slot = 9, .data = data, .checksum = checksum(data)};
  ASSERT_TRUE(writer->call<PUT>(put).ok());
  auto back = reader->call<GET>({.slot = 9, .count = 100'000});
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->data, data);
}

TEST(Endpoints, serve_small_calls_by_UDP) {
  State state;
  rpc::Server server;
  server.add(make_program(state));
  auto listener = listen(server, {"127.0.0.1", 0}, listen_on(Transport::Udp));
  ASSERT_TRUE(listener.ok());
  auto client = connect(listener->address(), connect_by(Transport::Udp));
  ASSERT_TRUE(client.ok()) << client.error().message();
  auto result = client->call<INCREMENT>(41);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(*result, 42u);
  EXPECT_EQ(listen(server, listener->address(), listen_on(Transport::Udp)).error(),
            Reason::AddressInUse);
}

TEST(Endpoints, leave_the_sizes_that_were_chosen_as_they_are) {
  using rpc::rdma::TransportOptions;
  EXPECT_EQ(for_software({}).call_size(), 73728u);
  EXPECT_EQ(for_software({}).reply_size(), 16384u);
  for (const std::uint32_t size : {1024u, 16384u, 262144u}) {
    TransportOptions chosen;
    chosen.inline_size = size;
    EXPECT_EQ(for_software(chosen).call_size(), size);
    EXPECT_EQ(for_software(chosen).reply_size(), size);
  }
  TransportOptions longer_calls;
  longer_calls.inline_call_size = 32768;
  EXPECT_EQ(for_software(longer_calls).call_size(), 32768u);
  EXPECT_EQ(for_software(longer_calls).reply_size(), 16384u);
}

// A server on software iWARP and on a device, and clients that choose.
class EndpointFabrics : public ::testing::Test {
 protected:
  EndpointFabrics() { server_.add(make_program(state_)); }
  Result<Listener, Reason> listening(FabricKind fabric, std::uint16_t port = 0,
                                     std::string device = "") {
    ListenOptions options = listen_on(Transport::Rdma, loops_);
    options.fabric = fabric;
    options.verbs.functions = devices_.functions();
    options.verbs.device = std::move(device);
    return listen(server_, {"127.0.0.1", port}, options);
  }
  Result<Client, rpc::CallError> connected(const Address& to, FabricKind fabric,
                                           std::string device = "") {
    ConnectOptions options = connect_by(Transport::Rdma);
    options.connector.fabric = fabric;
    options.connector.verbs.functions = devices_.functions();
    options.connector.verbs.device = std::move(device);
    options.connector.on_choice = [this](FabricKind kind, Reason why) {
      choices_.emplace_back(kind, why);
    };
    return connect(to, options);
  }

  fabric::stub::StubNetwork devices_{{fabric::stub::rxe_like()}};
  State state_;
  rpc::Server server_;
  std::shared_ptr<Loops> loops_ = std::make_shared<Loops>();
  std::vector<std::pair<FabricKind, Reason>> choices_;
};

TEST_F(EndpointFabrics, stand_beside_each_other_in_one_server) {
  auto software = listening(FabricKind::Iwarp);
  ASSERT_TRUE(software.ok());
  auto device = listening(FabricKind::Verbs, software->address().port);
  ASSERT_TRUE(device.ok());
  for (const FabricKind fabric : {FabricKind::Iwarp, FabricKind::Verbs}) {
    auto client = connected(software->address(), fabric);
    ASSERT_TRUE(client.ok()) << client.error().message();
    EXPECT_TRUE(client->call<INCREMENT>(1).ok());
  }
}

TEST_F(EndpointFabrics, are_chosen_by_the_route_and_the_choice_is_told) {
  auto software = listening(FabricKind::Iwarp);
  auto device = listening(FabricKind::Verbs, software->address().port);
  EXPECT_TRUE(connected(software->address(), FabricKind::Auto).ok());
  devices_.set_port(false);
  EXPECT_TRUE(connected(software->address(), FabricKind::Auto).ok());
  const std::vector<std::pair<FabricKind, Reason>> expected{
      {FabricKind::Verbs, Reason::None}, {FabricKind::Iwarp, Reason::VerbsPortDown}};
  EXPECT_EQ(choices_, expected);
}

TEST_F(EndpointFabrics, fall_back_where_the_server_has_software_only) {
  auto software = listening(FabricKind::Iwarp);
  EXPECT_TRUE(connected(software->address(), FabricKind::Auto).ok());
  ASSERT_EQ(choices_.size(), 1u);
  EXPECT_EQ(choices_[0].first, FabricKind::Iwarp);
}

TEST_F(EndpointFabrics, keep_to_the_device_that_is_named) {
  EXPECT_EQ(listening(FabricKind::Verbs, 0, "rxe1").error(), Reason::VerbsDeviceElsewhere);
  auto device = listening(FabricKind::Verbs, 0, "rxe0");
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE(connected(device->address(), FabricKind::Verbs, "rxe0").ok());
  auto other = connected(device->address(), FabricKind::Verbs, "rxe1");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().reason, Reason::VerbsDeviceElsewhere);
}

// The server would invalidate what must stay registered, and the device end the connection.
TEST_F(EndpointFabrics, tell_no_server_that_memory_which_stays_open_may_be_invalidated) {
  auto device = listening(FabricKind::Verbs);
  ASSERT_TRUE(device.ok());
  ConnectOptions options = connect_by(Transport::Rdma);
  options.connector.fabric = FabricKind::Verbs;
  options.connector.verbs.functions = devices_.functions();
  options.connector.verbs.open_regions = true;
  options.connector.rdma.reconnect_for = Duration(0);
  auto client = connect(device->address(), options);
  ASSERT_TRUE(client.ok());
  const std::vector<std::byte> bytes(100'000, std::byte{7});
  const Rope data = Rope::copy_of(bytes);
  for (int i = 0; i < 3; ++i) {
    const auto stored =
        client->call<PUT>(PutArgs{.slot = 1, .data = data, .checksum = checksum(data)});
    ASSERT_TRUE(stored.ok()) << stored.error().message();
    EXPECT_EQ(stored->stored, bytes.size());
  }
}

TEST(Endpoints, know_the_registered_port_of_NFS_over_RDMA) {
  PROVES("R8267-9-a");
  EXPECT_EQ(kRdmaPort, 20049);
}

}  // namespace
}  // namespace stag::endpoint
