#include "rpc/rdma/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "rpc/client.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/all_fabrics.h"
#include "testing/blob_program.h"
#include "testing/proves.h"

namespace stag::rpc::rdma {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

constexpr std::uint32_t kSizes[] = {0, 1, 3, 4, 1000, 4096, 16384, 65537, 1 << 20, (1 << 20) + 1};

// A client and a server on one fabric.
class ChannelAndServer {
 protected:
  explicit ChannelAndServer(std::unique_ptr<FabricHarness> made) : harness(std::move(made)) {}

  void connect(ChannelOptions options = {}, ServerOptions server_options = {}) {
    program_server.add(blob_program());
    server = std::make_unique<Server>(program_server, server_options);
    const Address address = *server->listen(harness->fabric(), harness->any_address());
    options.seed = 7;
    options.transfer_stats = &moved;
    channel = std::make_unique<Channel>(harness->fabric(), address, options);
    ASSERT_TRUE(harness->run(channel->connect({}))->ok());
    client.emplace(*channel, kBlobBinding);
  }
  void disconnect() {
    if (channel) harness->run(closing(*channel));
    if (server) harness->run(closing(*server));
    channel.reset();
    server.reset();
  }
  template <class T>
  static Task<bool> closing(T& object) {
    co_await object.close();
    co_return true;
  }
  template <class P>
  CallResult<typename P::Results> call(const typename P::Args& args, CallOptions options = {}) {
    return *harness->run(client->call<P>(args, options));
  }

  const std::unique_ptr<FabricHarness> harness;
  rpc::Server program_server;
  std::unique_ptr<Server> server;
  std::unique_ptr<Channel> channel;
  std::optional<Client> client;
  TransferStats moved;
};

class RdmaChannel : public ::testing::TestWithParam<FabricFactory>, protected ChannelAndServer {
 protected:
  RdmaChannel() : ChannelAndServer(GetParam().make()) {}
  void TearDown() override { disconnect(); }
};

INSTANTIATE_TEST_SUITE_P(On, RdmaChannel, ::testing::ValuesIn(all_fabrics_for_calls()),
                         fabric_name);

// In virtual time, with faults.
class RdmaChannelOnSim : public ::testing::Test, protected ChannelAndServer {
 protected:
  RdmaChannelOnSim() : ChannelAndServer(std::make_unique<SimHarness>()) {}
  void TearDown() override { disconnect(); }

  fabric::SimLoop& loop = static_cast<SimHarness&>(*harness).sim_loop();
  fabric::SimFabric& network = static_cast<SimHarness&>(*harness).sim();
};

TEST_P(RdmaChannel, answers_NULL_inline) {
  connect();
  EXPECT_TRUE(harness->run(client->ping(kBlobProgram, 1))->ok());
  EXPECT_EQ(moved.calls, 1u);
  EXPECT_EQ(moved.inline_bytes, 40u + 24u);
}

TEST_P(RdmaChannel, moves_eligible_arguments_by_Read_chunk_of_every_length) {
  connect();
  for (const std::uint32_t size : kSizes) {
    auto stored = call<Store>({size, pattern(size, size)});
    ASSERT_TRUE(stored.ok()) << size << " " << stored.error().message();
    EXPECT_TRUE(stored->intact) << size;
    EXPECT_EQ(stored->length, size);
  }
  EXPECT_GE(moved.read_chunks, 3u);
  EXPECT_EQ(moved.position_zero_chunks, 0u);
}

TEST_P(RdmaChannel, sends_longer_Calls_inline_where_both_sides_have_room_for_them) {
  ServerOptions roomy;
  ChannelOptions options;
  roomy.transport.inline_call_size = options.transport.inline_call_size = 72 * 1024;
  connect(options, roomy);
  const auto stored = call<Store>({65536, pattern(65536, 65536)});
  ASSERT_TRUE(stored.ok()) << stored.error().message();
  EXPECT_TRUE(stored->intact);
  EXPECT_EQ(moved.read_chunks, 0u);
  ASSERT_TRUE(call<Store>({73'000, pattern(1, 73'000)}).ok());
  EXPECT_EQ(moved.read_chunks, 0u);
  ASSERT_TRUE(call<Store>({73'728, pattern(1, 73'728)}).ok());
  EXPECT_EQ(moved.read_chunks, 1u);
  ASSERT_TRUE(call<Fetch>({20'000, 20'000}).ok());
  EXPECT_EQ(moved.write_chunks, 1u) << "Replies have no more room than before";
}

TEST_P(RdmaChannel, sends_no_longer_Calls_than_the_server_has_room_for) {
  ChannelOptions options;
  options.transport.inline_call_size = 72 * 1024;
  connect(options);
  ASSERT_TRUE(call<Store>({20'000, pattern(1, 20'000)}).ok());
  EXPECT_EQ(moved.read_chunks, 1u);
}

TEST_P(RdmaChannel, moves_eligible_results_by_Write_chunk_of_every_length) {
  connect();
  for (const std::uint32_t size : kSizes) {
    auto blob = call<Fetch>({size, size});
    ASSERT_TRUE(blob.ok()) << size << " " << blob.error().message();
    EXPECT_EQ(blob->data, pattern(size, size)) << size;
  }
  EXPECT_GE(moved.write_chunks, 3u);
  EXPECT_EQ(moved.reply_chunks, 0u);
}

TEST_P(RdmaChannel, moves_what_is_not_eligible_by_Long_Call_and_Long_Reply) {
  connect();
  for (const std::uint32_t size : kSizes) {
    auto stored = call<StoreWhole>({size, pattern(size, size)});
    ASSERT_TRUE(stored.ok()) << size << " " << stored.error().message();
    EXPECT_TRUE(stored->intact) << size;
    auto blob = call<FetchWhole>({size, size});
    ASSERT_TRUE(blob.ok()) << size << " " << blob.error().message();
    EXPECT_EQ(blob->data, pattern(size, size)) << size;
  }
  EXPECT_GE(moved.position_zero_chunks, 3u);
  EXPECT_GE(moved.reply_chunks, 3u);
  EXPECT_EQ(moved.read_chunks, 0u);
  EXPECT_EQ(moved.write_chunks, 0u);
}

TEST_P(RdmaChannel, moves_arguments_and_results_of_one_call_by_chunk) {
  connect();
  for (const std::uint32_t size : kSizes) {
    auto blob = call<Echo>({size, pattern(size, size)});
    ASSERT_TRUE(blob.ok()) << size << " " << blob.error().message();
    EXPECT_EQ(blob->data, pattern(size, size)) << size;
  }
}

TEST_P(RdmaChannel, places_results_in_the_callers_memory) {
  connect();
  std::vector<std::byte> memory(1 << 20);
  const ResultBuffer result_buffers[] = {{kBlobData, memory}};
  CallOptions options;
  options.result_buffers = result_buffers;
  options.timeout = 0s;  // else a fabric that discards nothing keeps away from it
  auto blob = call<Fetch>({9, 1 << 20}, options);
  ASSERT_TRUE(blob.ok());
  ASSERT_EQ(blob->data.pieces().size(), 1u);
  EXPECT_EQ(blob->data.pieces().front().data(), memory.data());
  EXPECT_EQ(Rope::borrow(memory), pattern(9, 1 << 20));
}

Task<void> fetch_many(Client& client, std::uint32_t first, std::uint32_t count, int& good) {
  for (std::uint32_t i = first; i < first + count; ++i) {
    auto blob = co_await client.call<Fetch>({i, (i * 7919) % 100000});
    good += blob.ok() && blob->data == pattern(i, (i * 7919) % 100000);
  }
}

TEST_P(RdmaChannel, keeps_many_calls_in_flight_within_few_credits) {
  ServerOptions few;
  few.credits = 4;
  connect({}, few);
  int good = 0;
  TaskGroup group;
  for (std::uint32_t i = 0; i < 40; ++i) group.add(fetch_many(*client, i * 100, 10, good));
  EXPECT_TRUE(harness->run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 400);
}

TEST_P(RdmaChannel, exposes_nothing_after_a_call) {
  connect();
  auto* verbs = dynamic_cast<VerbsHarness*>(harness.get());
  if (verbs == nullptr || verbs->open_regions()) GTEST_SKIP() << "nobody could look";
  for (const std::uint32_t size : {100u, 65537u, 3u << 20}) {
    ASSERT_TRUE(call<Echo>({size, pattern(size, size)}).ok());
    EXPECT_EQ(verbs->stub().remote_handles(), 0u) << size;
    ASSERT_TRUE(call<StoreWhole>({size, pattern(size, size)}).ok());
    ASSERT_TRUE(call<FetchWhole>({size, size}).ok());
    EXPECT_EQ(verbs->stub().remote_handles(), 0u) << size;
  }
}

TEST_F(RdmaChannelOnSim, sends_calls_in_progress_again_when_the_connection_is_lost) {
  connect();
  int good = 0;
  TaskGroup group;
  for (std::uint32_t i = 0; i < 8; ++i) group.add(fetch_many(*client, i * 100, 20, good));
  for (int losses = 0; losses < 5; ++losses) {
    const std::uint64_t before = network.steps();
    loop.run_until([&] { return network.steps() > before + 60 || group.running() == 0; });
    network.lose_connections();
  }
  EXPECT_TRUE(loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 160);
  EXPECT_EQ(channel->connections_lost(), 5u);
}

TEST_F(RdmaChannelOnSim, traces_once_that_the_server_is_lost_and_why_it_is_not_back) {
  connect();
  ASSERT_TRUE(harness->run(client->ping(kBlobProgram, 1))->ok());
  const auto lost = reason_counters().of(Reason::RpcConnectionLost);
  const auto refused = reason_counters().of(Reason::ConnectionRefused);
  harness->run(closing(*server));
  server.reset();
  CallOptions options;
  options.timeout = 30s;
  EXPECT_FALSE(call<Store>({1, pattern(1, 1)}, options).ok());
  EXPECT_EQ(reason_counters().of(Reason::RpcConnectionLost), lost + 1);
  EXPECT_EQ(reason_counters().of(Reason::ConnectionRefused), refused + 1);
}

TEST_F(RdmaChannelOnSim, traces_no_loss_when_it_closes) {
  connect();
  ASSERT_TRUE(harness->run(client->ping(kBlobProgram, 1))->ok());
  const auto lost = reason_counters().of(Reason::RpcConnectionLost);
  disconnect();
  EXPECT_EQ(reason_counters().of(Reason::RpcConnectionLost), lost);
}

TEST_F(RdmaChannelOnSim, times_out_a_call_and_serves_the_next_on_the_same_connection) {
  connect();
  CallOptions options;
  options.timeout = 1us;  // less than the network takes
  auto blob = call<Fetch>({1, 1 << 20}, options);
  ASSERT_FALSE(blob.ok());
  EXPECT_EQ(blob.error().reason, Reason::TimedOut);
  auto next = call<Fetch>({2, 100000});
  ASSERT_TRUE(next.ok()) << next.error().message();
  EXPECT_EQ(next->data, pattern(2, 100000));
  EXPECT_EQ(network.open_connections(), 2u);
}

TEST_P(RdmaChannel, fails_calls_with_Shutdown_when_it_closes) {
  connect();
  std::optional<CallResult<Blob>> result;
  detach([](Client& c, std::optional<CallResult<Blob>>& to) -> Task<void> {
    to.emplace(co_await c.call<Fetch>({1, 1 << 20}));
  }(*client, result));
  harness->run(closing(*channel));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error().reason, Reason::Shutdown);
}

Task<void> fail_then_cancel(Client& client, CancelSource& other, std::optional<bool>& good) {
  auto blob = co_await client.call<Fetch>({1, 100000});
  other.cancel();
  good = blob.ok();
}
Task<void> fetch_cancellable(Client& client, CancelToken token, std::optional<Reason>& ended) {
  CallOptions options;
  options.cancel = token;
  auto blob = co_await client.call<Fetch>({2, 10}, options);
  ended = blob.ok() ? Reason::None : blob.error().reason;
}

TEST_F(RdmaChannelOnSim, ends_as_cancelled_what_the_call_woken_before_it_cancelled) {
  connect();
  network.lose_connections();
  loop.run_for(1s);
  // Both wait for a connection. The first fails as soon as it is woken: its memory cannot be
  // exposed.
  fabric::Faults faults;
  faults.fail_expose = 1;
  network.set_faults(faults);
  CancelSource source;
  std::optional<bool> first_good;
  std::optional<Reason> ended;
  detach(fail_then_cancel(*client, source, first_good));
  detach(fetch_cancellable(*client, source, ended));
  EXPECT_TRUE(loop.run_until([&] { return ended.has_value(); }));
  EXPECT_EQ(first_good, false);
  EXPECT_EQ(ended, Reason::Cancelled);
}

struct NotedDeadline final : Deadline {
  NotedDeadline(std::vector<int>& to, int own) : ended(to), number(own) {}
  void on_deadline() override { ended.push_back(number); }
  std::vector<int>& ended;
  int number;
};

TEST(Deadlines, each_comes_at_its_own_time_whatever_the_order_and_whoever_left_before) {
  fabric::SimLoop loop;
  Deadlines deadlines(loop);
  std::vector<int> ended;
  const TimePoint start = loop.now();
  std::deque<NotedDeadline> all;
  for (const int second : {5, 3, 9, 3, 7, 1}) {
    all.emplace_back(ended, second);
    deadlines.add(all.back(), start + std::chrono::seconds(second));
  }
  all.pop_back();
  loop.run_for(2s);
  EXPECT_TRUE(ended.empty()) << "that one has left";
  loop.run_for(1s);
  EXPECT_EQ(ended, (std::vector{3, 3}));
  all.pop_front();
  loop.run_until_idle();
  EXPECT_EQ(ended, (std::vector{3, 3, 7, 9}));
  EXPECT_EQ(loop.now(), start + 9s);
}

}  // namespace
}  // namespace stag::rpc::rdma
