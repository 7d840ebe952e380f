// What a connection does besides carrying calls forward: the reverse direction, health, Replies
// larger than expected, and the state that a new connection starts from.
#include "rpc/rdma/link.h"

#include <gtest/gtest.h>

#include "fabric/sim/sim_fabric.h"
#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/blob_program.h"
#include "testing/proves.h"

namespace stag::rpc::rdma {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

template <class T>
Task<bool> closed(T& object) {
  co_await object.close();
  co_return true;
}

// Asks its own caller for a blob, in the reverse direction, and hands it on.
struct AskBack : FetchProcedure<6> {};
struct Ignore : FetchProcedure<7> {};
// Answers more than the binding promises, as a procedure whose size nobody can know.
struct Unpredicted : FetchProcedure<8> {};

struct Fixed : FetchProcedure<9> {};

constexpr std::array kTable{
    rpc::bind<Fixed>({}, {},
                     [](const Wanted&) {
                       return ReplyBound{20000, {}};
                     }),
    rpc::bind<AskBack>({}, {},
                       [](const Wanted& w) {
                         return ReplyBound{kBlobFrame + w.length + 3, {}};
                       }),
    rpc::bind<Ignore>({}, {},
                      [](const Wanted&) {
                        return ReplyBound{100, {}};
                      }),
    rpc::bind<Unpredicted>({}, {},
                           [](const Wanted&) {
                             return ReplyBound{20000, {}};
                           })
        .retry_short_replies(),
};
constexpr Binding kBinding{kTable};

Task<Blob> ask_back(CallContext& context, Wanted wanted) {
  std::shared_ptr<rpc::Channel> reverse = context.reverse_channel();
  if (reverse == nullptr) co_return Blob{};
  Client client(*reverse, kBlobBinding);
  auto blob = co_await client.call<Fetch>(wanted);
  if (!blob) co_return Blob{};
  co_return *std::move(blob);
}
Task<Result<Blob, CallRefusal>> ignore(CallContext&, Wanted) {
  co_return Failure{CallRefusal{.status = {}, .drop = true}};
}

Task<void> ignored(Client& client, CallOptions options, std::optional<CallResult<Blob>>& to) {
  to.emplace(co_await client.call<Ignore>({1, 1}, options));
}

Task<void> pinged(Client& client, std::optional<CallResult<Ok>>& to) {
  CallOptions patient;
  patient.timeout = 300s;
  to.emplace(co_await client.ping(kBlobProgram, 1, patient));
}

// A Service that can stop answering anything at all, NULL included.
class Hanging final : public Service {
 public:
  explicit Hanging(Service& inner) : inner_(inner) {}
  void arm() { armed_ = true; }
  void disarm() { armed_ = false; }
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    if (armed_) co_return std::nullopt;
    co_return co_await inner_.serve(call);
  }

 private:
  Service& inner_;
  bool armed_ = false;
};

class RdmaLink : public ::testing::Test {
 protected:
  RdmaLink() : network(loop) {
    Program program(kBlobProgram, 1, kBinding);
    program.add<AskBack>(ask_back)
        .add<Ignore>(ignore)
        .add<Unpredicted>(fetch_blob)
        .add<Fixed>(fetch_blob);
    program_server.add(std::move(program));
    client_server.add(blob_program());
  }
  void connect(ChannelOptions options = {}, ServerOptions server_options = {}) {
    server = std::make_unique<Server>(program_server_hangs, server_options);
    const Address address = *server->listen(network, {"server", 20049});
    options.seed = 3;
    options.transfer_stats = &moved;
    channel = std::make_unique<Channel>(network, address, options);
    channel->serve_reverse(client_server);
    ASSERT_TRUE(loop.run(channel->connect({})).ok());
    client.emplace(*channel, kBinding);
  }
  void TearDown() override {
    if (channel) loop.run(closed(*channel));
    if (server) loop.run(closed(*server));
  }

  fabric::SimLoop loop;
  fabric::SimFabric network;
  rpc::Server program_server, client_server;
  Hanging program_server_hangs{program_server};
  std::unique_ptr<Server> server;
  std::unique_ptr<Channel> channel;
  std::optional<Client> client;
  TransferStats moved;
};

TEST_F(RdmaLink, carries_calls_of_the_server_with_chunks_in_the_reverse_direction) {
  PROVES("R8167-2.2-a");
  connect();
  for (const std::uint32_t size : {4u, 5000u, 200000u}) {
    auto blob = loop.run(client->call<AskBack>({size, size}));
    ASSERT_TRUE(blob.ok()) << blob.error().message();
    EXPECT_EQ(blob->data, pattern(size, size));
  }
}

TEST_F(RdmaLink, asks_in_a_reserved_credit_whether_a_quiet_server_lives) {
  PROVES("R8267-6.7.2-a");
  ServerOptions two;
  two.credits = 2;
  ChannelOptions options;
  options.probe_after = 10s;
  connect(options, two);
  ASSERT_TRUE(loop.run(client->ping(kBlobProgram, 1)).ok());
  const auto silent = reason_counters().of(Reason::RpcServerSilent);
  CallOptions patient;
  patient.timeout = 300s;
  // Two calls that the server never answers: the second finds no credit, because one is kept for
  // the probes.
  std::optional<CallResult<Blob>> first, second;
  detach(ignored(*client, patient, first));
  detach(ignored(*client, patient, second));
  loop.run_for(100s);
  EXPECT_EQ(reason_counters().of(Reason::RpcServerSilent), silent);
  EXPECT_GE(moved.calls, 5u) << "health checks were answered";
  EXPECT_FALSE(first.has_value());
  EXPECT_TRUE(loop.run_until([&] { return first.has_value() && second.has_value(); }));
  EXPECT_EQ(first->error().reason, Reason::TimedOut);
}

TEST_F(RdmaLink, gives_a_connection_up_when_the_probe_has_no_answer) {
  PROVES("R8267-6.7.2-b");
  ChannelOptions options;
  options.probe_after = 10s;
  connect(options);
  ASSERT_TRUE(loop.run(client->ping(kBlobProgram, 1)).ok());
  const auto silent = reason_counters().of(Reason::RpcServerSilent);
  program_server_hangs.arm();
  CallOptions patient;
  patient.timeout = 300s;
  std::optional<CallResult<Blob>> result;
  detach(ignored(*client, patient, result));
  EXPECT_TRUE(loop.run_until(
      [&] { return reason_counters().of(Reason::RpcServerSilent) == silent + 1; }, 35s));
  program_server_hangs.disarm();
  EXPECT_TRUE(loop.run(client->ping(kBlobProgram, 1)).ok()) << "on the next connection";
  loop.run_until([&] { return result.has_value(); });
}

// It has taken the one credit that a new connection has, and no probe can be sent.
TEST_F(RdmaLink, gives_a_connection_up_whose_first_Call_has_no_answer) {
  for (const std::uint32_t credits : {64u, 1u}) {
    ChannelOptions options;
    options.probe_after = 10s;
    options.credits = credits;
    program_server_hangs.arm();
    connect(options);
    const auto silent = reason_counters().of(Reason::RpcServerSilent);
    std::optional<CallResult<Ok>> result;
    detach(pinged(*client, result));
    EXPECT_TRUE(loop.run_until(
        [&] { return reason_counters().of(Reason::RpcServerSilent) == silent + 1; }, 65s));
    program_server_hangs.disarm();
    EXPECT_TRUE(loop.run_until([&] { return result.has_value(); }));
    EXPECT_TRUE(result && result->ok()) << "on the next connection";
    TearDown();
  }
}

TEST_F(RdmaLink, asks_whether_the_server_lives_before_Calls_take_the_credit_of_a_new_connection) {
  ChannelOptions options;
  options.probe_after = 10s;
  connect(options);
  ASSERT_TRUE(loop.run(client->ping(kBlobProgram, 1)).ok());
  const auto silent = reason_counters().of(Reason::RpcServerSilent);
  CallOptions patient, hasty;
  patient.timeout = 300s;
  hasty.timeout = 5s;
  std::optional<CallResult<Blob>> slow;
  detach(ignored(*client, patient, slow));
  network.lose_connections();
  EXPECT_TRUE(loop.run_until([&] { return channel->connections_lost() == 1; }));
  EXPECT_TRUE(loop.run(client->ping(kBlobProgram, 1, hasty)).ok()) << "behind the slow Call";
  program_server_hangs.arm();
  network.lose_connections();
  EXPECT_TRUE(loop.run_until(
      [&] { return reason_counters().of(Reason::RpcServerSilent) == silent + 1; }, 25s));
  program_server_hangs.disarm();
  loop.run_until([&] { return slow.has_value(); });
}

// The only credit of a new connection is for what is answered at once.
TEST_F(RdmaLink, makes_no_Call_wait_for_the_first_one_of_a_Channel) {
  connect();
  const auto silent = reason_counters().of(Reason::RpcServerSilent);
  CallOptions patient, hasty;
  patient.timeout = 300s;
  hasty.timeout = 5s;
  std::optional<CallResult<Blob>> slow;
  detach(ignored(*client, patient, slow));
  EXPECT_TRUE(loop.run(client->ping(kBlobProgram, 1, hasty)).ok());
  EXPECT_FALSE(slow.has_value());
  loop.run_for(200s);
  EXPECT_EQ(reason_counters().of(Reason::RpcServerSilent), silent);
  EXPECT_EQ(channel->connections_lost(), 0u);
  loop.run_until([&] { return slow.has_value(); });
}

TEST_F(RdmaLink, begins_with_no_other_call_where_the_first_one_is_a_NULL_call) {
  connect();
  EXPECT_TRUE(loop.run(client->ping(kBlobProgram, 1)).ok());
  EXPECT_EQ(moved.calls, 1u);
}

Task<void> fetched(Client& client, std::uint32_t length, int& good) {
  CallOptions patient;
  patient.timeout = 300s;
  good += (co_await client.call<Fetch>({1, length}, patient)).ok() ? 1 : 0;
}

// The Reply to a NULL call waits for its turn longer than a health check does, and no other Reply
// comes for half a minute.
TEST(RdmaLinkOnSlowNetwork, is_kept_while_large_Replies_are_on_their_way) {
  constexpr int kCalls = 8;
  fabric::SimLoop loop;
  fabric::SimOptions slow;
  slow.time_per_mib = 1s;
  slow.max_registration = 1 << 20;
  fabric::SimFabric network(loop, slow);
  rpc::Server blobs;
  blobs.add(blob_program());
  Server server(blobs);
  const Address address = *server.listen(network, {"server", 20049});
  ChannelOptions options;
  options.probe_after = 4s;
  Channel channel(network, address, options);
  ASSERT_TRUE(loop.run(channel.connect({})).ok());
  Client client(channel, kBlobBinding);
  ASSERT_TRUE(loop.run(client.ping(kBlobProgram, 1)).ok());
  const auto silent = reason_counters().of(Reason::RpcServerSilent);
  int good = 0;
  TaskGroup group;
  for (int i = 0; i < kCalls; ++i) group.add(fetched(client, 4 << 20, good));
  EXPECT_TRUE(loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, kCalls);
  EXPECT_EQ(reason_counters().of(Reason::RpcServerSilent), silent);
  loop.run(closed(channel));
  loop.run(closed(server));
}

// When the interval ends that began before the loss, the new connection is a second old.
TEST(RdmaLinkOnSlowNetwork, is_not_given_up_for_the_silence_of_the_connection_before) {
  fabric::SimLoop loop;
  fabric::SimOptions far;
  far.latency = 2s;
  fabric::SimFabric network(loop, far);
  rpc::Server blobs;
  blobs.add(blob_program());
  Server server(blobs);
  ChannelOptions options;
  options.probe_after = 10s;
  Channel channel(network, *server.listen(network, {"server", 20049}), options);
  ASSERT_TRUE(loop.run(channel.connect({})).ok());
  Client client(channel, kBlobBinding);
  ASSERT_TRUE(loop.run(client.ping(kBlobProgram, 1)).ok());  // begins the interval; takes 4 s
  loop.run_for(1s);
  const auto silent = reason_counters().of(Reason::RpcServerSilent);
  std::optional<CallResult<Ok>> result;
  network.lose_connections();
  detach(pinged(client, result));
  EXPECT_TRUE(loop.run_until([&] { return result.has_value(); }));
  EXPECT_EQ(reason_counters().of(Reason::RpcServerSilent), silent);
  EXPECT_EQ(channel.connections_lost(), 1u);
  loop.run(closed(channel));
  loop.run(closed(server));
}

TEST_F(RdmaLink, makes_a_call_again_with_more_room_when_its_Reply_chunk_was_too_small) {
  PROVES("R8267-3.1-b", "R8267-3.1-a");
  connect();
  auto blob = loop.run(client->call<Unpredicted>({5, 300000}));
  ASSERT_TRUE(blob.ok()) << blob.error().message();
  EXPECT_EQ(blob->data, pattern(5, 300000));
}

TEST_F(RdmaLink, fails_a_call_whose_Reply_chunk_was_too_small_when_its_binding_allows_no_other) {
  PROVES("R8267-3.1-a");
  connect();
  auto blob = loop.run(client->call<Fixed>({5, 300000}));
  ASSERT_FALSE(blob.ok());
  EXPECT_EQ(blob.error().reason, Reason::RdmaPeerRefusedChunks);
  EXPECT_TRUE(loop.run(client->ping(kBlobProgram, 1)).ok()) << "the connection is kept";
  EXPECT_EQ(network.open_connections(), 2u);
}

TEST_F(RdmaLink, makes_a_call_again_only_so_often) {
  PROVES("R8267-3.1-d");
  connect();
  auto blob = loop.run(client->call<Unpredicted>({5, 4 << 20}));
  ASSERT_FALSE(blob.ok());
  EXPECT_EQ(blob.error().reason, Reason::RdmaPeerRefusedChunks);
}

TEST_F(RdmaLink, works_with_the_smallest_inline_size_and_one_credit) {
  ServerOptions tiny;
  tiny.transport.inline_size = 1024;
  tiny.credits = 1;
  ChannelOptions options;
  options.transport.inline_size = 1024;
  connect(options, tiny);
  Client blobs(*channel, kBinding);
  for (const std::uint32_t size : {100u, 1500u, 70000u}) {
    auto blob = loop.run(client->call<AskBack>({size, size}));
    ASSERT_TRUE(blob.ok()) << blob.error().message();
    EXPECT_EQ(blob->data, pattern(size, size));
  }
}

}  // namespace
}  // namespace stag::rpc::rdma
