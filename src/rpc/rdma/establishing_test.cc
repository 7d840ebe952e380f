// What the two ends tell each other when they connect, what holds afterwards, and how a connection
// is replaced.
#include <gtest/gtest.h>

#include "base/task_group.h"
#include "testing/rdma_pair.h"

namespace stag::rpc::rdma {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> private_data(const Pair& pair, Act act, End end) {
  return pair.record[pair.record.first(act, end)].bytes;
}

// Its word in a Call.
constexpr std::size_t kProcedure = 5;

std::size_t longest(const std::vector<WireMessage>& messages) {
  std::size_t size = 0;
  for (const WireMessage& message : messages) size = std::max(size, message.size);
  return size;
}

// Of `messages` those of the latest connection.
std::vector<WireMessage> latest(const Pair& pair, std::vector<WireMessage> messages) {
  std::size_t connected = 0;
  for (std::size_t i = 0; i < pair.record.log().size(); ++i)
    if (pair.record[i].act == Act::Connect) connected = i;
  std::erase_if(messages, [connected](const WireMessage& m) { return m.index < connected; });
  return messages;
}

std::vector<std::byte> octets(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(Establishing, is_the_clients_part) {
  PROVES("R8166-2.2.3-a");
  PairSetup setup;
  setup.serves_reverse = true;
  Pair pair(setup);
  pair.loop.run_for(10min);
  EXPECT_EQ(pair.client_side.connects() + pair.server_side.connects(), 0u);
  ASSERT_TRUE(pair.connect().ok());
  EXPECT_TRUE(pair.call<Fetch>({1, 10}).ok());
  EXPECT_TRUE(pair.call<Fetch>({1, 100000}).ok());
  Client caller = pair.caller();
  EXPECT_TRUE(pair.loop.run(caller.call<Fetch>({1, 10})).ok());
  EXPECT_EQ(pair.client_side.connects(), 1u);
  EXPECT_EQ(pair.record.count(Act::Accept, End::Passive), 1u);
  EXPECT_EQ(pair.server_side.connects(), 0u);
}

TEST(Establishing, carries_the_properties_of_both_ends_in_one_format) {
  PROVES("R8797-4-a", "R8797-4-d");
  PairSetup setup;
  setup.client.transport.inline_size = 4096;
  setup.client.transport.inline_call_size = 8192;
  setup.server.transport.inline_size = 2048;
  setup.server.transport.inline_call_size = 65536;
  setup.server.transport.remote_invalidation = false;
  Pair pair(setup);
  ASSERT_TRUE(pair.connect().ok());
  const auto asked = private_data(pair, Act::Connect, End::Active);
  const auto answered = private_data(pair, Act::Accept, End::Passive);
  // Identifier, version, R, the longest Send of the one who speaks, its longest Receive.
  EXPECT_EQ(asked, octets({0xf6, 0xab, 0x0e, 0x18, 1, 1, 7, 3}));
  EXPECT_EQ(answered, octets({0xf6, 0xab, 0x0e, 0x18, 1, 0, 1, 63}));
  EXPECT_EQ(rpcrdma::decode_private_data(asked), (rpcrdma::PrivateData{8192, 4096, true}));
  EXPECT_EQ(rpcrdma::decode_private_data(answered), (rpcrdma::PrivateData{2048, 65536, false}));
}

TEST(Establishing, again_obeys_what_the_server_says_now_from_the_first_message_on) {
  PROVES("R8797-4-c");
  PairSetup setup;
  setup.client.transport.inline_size = setup.server.transport.inline_size = 8192;
  Pair pair(setup);
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  ASSERT_TRUE(pair.call<Fetch>({1, 100000}).ok());
  EXPECT_GT(longest(pair.calls(End::Active)), 7000u);
  EXPECT_TRUE(pair.replies(End::Passive).back().invalidate.has_value());

  ServerOptions smaller;
  smaller.transport.inline_size = 2048;
  smaller.transport.remote_invalidation = false;
  pair.restart_server(smaller);
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  ASSERT_TRUE(pair.call<Fetch>({1, 1500}).ok());
  ASSERT_TRUE(pair.call<Fetch>({1, 100000}).ok());
  EXPECT_LE(longest(latest(pair, pair.messages(End::Active))), 2048u);
  EXPECT_LE(longest(latest(pair, pair.messages(End::Passive))), 2048u);
  const auto replies = latest(pair, pair.replies(End::Passive));
  EXPECT_EQ(replies.size(), 3u);
  for (const WireMessage& reply : replies) EXPECT_FALSE(reply.invalidate.has_value());

  pair.restart_server(setup.server);
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  EXPECT_GT(longest(latest(pair, pair.calls(End::Active))), 7000u);
}

TEST(Establishing, settles_the_properties_until_the_next_connection) {
  PROVES("R8797-4-b");
  PairSetup setup;
  setup.client.transport.inline_size = 8192;
  setup.server.transport.inline_size = 8192;
  Pair pair(setup);
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  EXPECT_GT(longest(pair.calls(End::Active)), 7000u);
  ServerOptions smaller;
  smaller.transport.inline_size = 2048;
  pair.restart_server(smaller);
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  pair.record.clear();
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  EXPECT_LE(longest(pair.calls(End::Active)), 2048u);
  pair.restart_server(setup.server);
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  pair.record.clear();
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 7000)}).ok());
  EXPECT_GT(longest(pair.calls(End::Active)), 7000u);
}

TEST(Establishing, does_without_properties_where_the_fabric_cannot_carry_them) {
  PROVES("R8797-4-e");
  PairSetup setup;
  for (const bool server_can : {false, true}) {
    setup.sim.max_private_data = server_can ? 252 : 4;
    Pair pair(setup);
    pair.record.tampering.no_private_data = true;
    ASSERT_TRUE(pair.connect().ok());
    EXPECT_TRUE(private_data(pair, Act::Connect, End::Active).empty());
    EXPECT_EQ(private_data(pair, Act::Accept, End::Passive).size(), server_can ? 8u : 0u);
    for (const std::uint32_t size : {10u, 900u, 1000u, 1100u, 5000u, 100000u}) {
      ASSERT_TRUE(pair.call<Store>({size, pattern(size, size)}).ok()) << size;
      ASSERT_TRUE(pair.call<FetchWhole>({size, size}).ok()) << size;
    }
    EXPECT_LE(longest(pair.messages(End::Active)), 1024u);
    EXPECT_LE(longest(pair.messages(End::Passive)), 1024u);
  }
}

// A Call, or a Reply, of exactly `size` bytes, header included.
Blob call_of(std::uint32_t size) {
  const std::uint32_t length = size - 28 - 40 - kBlobFrame;
  return {size, pattern(size, length)};
}
Wanted reply_of(std::uint32_t size) {
  return {size, size - 28 - 24 - kBlobFrame};
}

TEST(Establishing, promises_to_receive_messages_of_the_whole_size_announced) {
  PROVES("R8797-4-m", "R8166-3.3.3-e");
  for (const std::uint32_t size : {1024u, 4096u, 262144u}) {
    PairSetup setup;
    setup.client.transport.inline_size = setup.server.transport.inline_size = size;
    Pair pair(setup);
    ASSERT_TRUE(pair.call<Store>(call_of(size))->intact);
    ASSERT_TRUE(pair.call<Fetch>(reply_of(size)).ok());
    EXPECT_EQ(pair.calls(End::Active).at(0).size, size);
    EXPECT_EQ(pair.replies(End::Passive).at(1).size, size);
    EXPECT_EQ(
        rpcrdma::decode_private_data(private_data(pair, Act::Accept, End::Passive))->receive_size,
        size);
    EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
  }
}

TEST(Establishing, gives_each_direction_the_smaller_of_what_one_sends_and_the_other_receives) {
  PROVES("R8797-4.2-d", "R8797-4.2-e", "R8166-3.3.2-a", "R8166-3.3.2-b");
  for (const bool swapped : {false, true}) {
    PairSetup setup;
    TransportOptions& one = swapped ? setup.server.transport : setup.client.transport;
    TransportOptions& other = swapped ? setup.client.transport : setup.server.transport;
    one.inline_size = 2048;
    one.inline_call_size = 8192;
    other.inline_size = 3072;
    other.inline_call_size = 4096;
    Pair pair(setup);
    for (const std::uint32_t more : {0u, 4u}) {
      ASSERT_TRUE(pair.call<Store>(call_of(4096 + more))->intact);
      ASSERT_TRUE(pair.call<Fetch>(reply_of(2048 + more)).ok());
      ASSERT_TRUE(pair.call<FetchWhole>(reply_of(2048 + more)).ok());
    }
    EXPECT_EQ(longest(pair.calls(End::Active)), 4096u);
    EXPECT_EQ(longest(pair.replies(End::Passive)), 2048u);
  }
}

Task<void> store_and_fetch(Client& client, std::uint32_t size, int& good) {
  auto stored = co_await client.call<Store>(call_of(size));
  good += stored.ok() && stored->intact;
  auto blob = co_await client.call<Fetch>(reply_of(size));
  good += blob.ok();
}

TEST(Establishing, promises_so_many_Receives_of_that_size_as_credits_are_granted) {
  PROVES("R8797-4.2-f");
  constexpr int kCredits = 12;
  PairSetup setup;
  setup.client.transport.inline_size = setup.server.transport.inline_size = 4096;
  setup.client.credits = setup.server.credits = kCredits;
  Pair pair(setup);
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  int good = 0;
  TaskGroup group;
  for (int i = 0; i < kCredits; ++i) group.add(store_and_fetch(*pair.client, 4096, good));
  // All are sent before anything arrives.
  EXPECT_EQ(pair.calls(End::Active).size(), 1u + kCredits);
  EXPECT_TRUE(pair.loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 2 * kCredits);
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
}

TEST(Establishing, lets_a_generous_server_serve_a_client_that_says_nothing) {
  PROVES("R8166-3.3.3-d", "R8166-3.3.3-f");
  PairSetup setup;
  setup.client.transport.inline_size = 1024;
  setup.client.credits = 1;
  Pair pair(setup);
  pair.record.tampering.no_private_data = true;
  for (const std::uint32_t size : {10u, 1000u, 5000u, 20000u}) {
    ASSERT_TRUE(pair.call<Store>({size, pattern(size, size)}).ok()) << size;
    ASSERT_TRUE(pair.call<FetchWhole>({size, size}).ok()) << size;
  }
  EXPECT_GT(
      rpcrdma::decode_private_data(private_data(pair, Act::Accept, End::Passive))->receive_size,
      1024u);
  for (const WireMessage& reply : pair.replies(End::Passive)) {
    EXPECT_GT(reply.header.credits, 1u);
    EXPECT_LE(reply.size, 1024u);
  }
  // One Receive for each of those messages and more was there from the start.
  EXPECT_GE(pair.record[pair.record.first(Act::Credit, End::Passive)].length, 128u);
}

TEST(Establishing, honours_the_number_of_Reads_the_peer_can_answer) {
  PROVES("R8166-3.3.1-k");
  PairSetup setup;
  setup.client.transport.inbound_reads = 1;
  setup.sim.max_registration = 16384;
  Pair pair(setup);
  auto stored = pair.call<Store>({1, pattern(1, 16 * 16384)});
  ASSERT_TRUE(stored.ok());
  EXPECT_TRUE(stored->intact);
  EXPECT_EQ(pair.record.count(Act::Read, End::Passive), 16u);
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
}

Task<void> fetch_some(Client& client, std::uint32_t program_seed, int& good) {
  for (std::uint32_t i = 0; i < 10; ++i) {
    auto blob = co_await client.call<Fetch>({program_seed + i, 5000});
    good += blob.ok();
  }
}

// The same procedures under another program number.
constexpr std::uint32_t kOtherProgram = kBlobProgram + 1;
struct OtherFetch : FetchProcedure<2> {
  static constexpr std::uint32_t program = kOtherProgram;
};
Task<void> fetch_some_others(Client& client, int& good) {
  for (std::uint32_t i = 0; i < 10; ++i) {
    auto blob = co_await client.call<OtherFetch>({i, 500});
    good += blob.ok();
  }
}

TEST(Establishing, is_refused_to_strangers_before_any_memory_is_exposed) {
  PROVES("R8166-8.1.1-b");
  for (const char* network : {"192.0.2.0/24", "198.51.100.0/24"}) {
    PairSetup setup;
    setup.sim.client_host = "192.0.2.7";
    setup.client.reconnect_for = 1s;
    setup.server.allow = {*IpNetwork::parse(network)};
    Pair pair(setup);
    const std::uint64_t before = reason_counters().of(Reason::PeerNotAllowed);
    const bool served = pair.call<Fetch>({1, 100000}).ok();
    EXPECT_EQ(served, std::string_view(network) == "192.0.2.0/24");
    EXPECT_EQ(reason_counters().of(Reason::PeerNotAllowed) > before, !served);
    EXPECT_EQ(pair.record.count(Act::Accept, End::Passive) > 0, served);
    EXPECT_EQ(pair.record.count(Act::ExposeSink, End::Active) > 0, served);
  }
}

TEST(Establishing, happens_once_for_several_programs_which_share_credits_and_thresholds) {
  PROVES("R8166-6.3-a");
  PairSetup setup;
  setup.server.credits = 3;
  Pair pair(setup);
  Program other(kOtherProgram, 1);
  other.add<OtherFetch>(fetch_blob);
  pair.program_server.add(std::move(other));
  Client second(*pair.channel);
  int good = 0;
  TaskGroup group;
  for (std::uint32_t i = 0; i < 5; ++i) {
    group.add(fetch_some(*pair.client, i, good));
    group.add(fetch_some_others(second, good));
  }
  EXPECT_TRUE(pair.loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 100);
  EXPECT_EQ(pair.client_side.connects(), 1u);
  int in_flight = 0, most = 0;
  for (const Recorded& entry : pair.record.log()) {
    if (entry.end != End::Active) continue;
    in_flight += entry.act == Act::Send ? 1 : entry.act == Act::Receive ? -1 : 0;
    most = std::max(most, in_flight);
  }
  EXPECT_EQ(most, 3) << "together, not each";
}

TEST(Establishing, again_sends_the_Calls_in_progress_with_the_same_XIDs) {
  PROVES("R8166-4.5.5-a", "R8167-5.4-a");
  Pair pair;
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  pair.record.clear();
  int good = 0;
  TaskGroup group;
  for (std::uint32_t i = 0; i < 6; ++i) group.add(fetch_some(*pair.client, i, good));
  pair.network.lose_connections();
  EXPECT_TRUE(pair.loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 60);
  std::set<std::uint32_t> first, all;
  for (const WireMessage& call : pair.calls(End::Active)) {
    if (call.word(kProcedure) == 0) continue;
    if (call.connection == 1) first.insert(call.header.xid);
    all.insert(call.header.xid);
  }
  EXPECT_EQ(first.size(), 6u);
  EXPECT_EQ(all.size(), 60u) << "no XID but those of the 60 calls";
  EXPECT_EQ(pair.client_side.connects(), 2u);
}

TEST(Establishing, again_is_what_a_server_forces_that_can_send_nothing_any_more) {
  PROVES("R8166-4.5.4-c");
  PairSetup setup;
  Pair pair(setup);
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  int failures = 0;
  pair.record.tampering.fail_send = [&](End end) { return end == End::Passive && ++failures == 1; };
  CallOptions patient;
  patient.timeout = 300s;
  // A Reply that cannot be sent, then an error.
  EXPECT_TRUE(pair.call<Fetch>({1, 10}, patient).ok());
  EXPECT_EQ(pair.record.count(Act::Close, End::Passive), 1u);
  EXPECT_EQ(pair.client_side.connects(), 2u);
  failures = 0;
  EXPECT_FALSE(pair.call<Undersized>({1, 100000}, patient).ok());
  EXPECT_EQ(pair.record.count(Act::Close, End::Passive), 2u);
  EXPECT_EQ(pair.client_side.connects(), 3u);
}

TEST(Establishing, again_waits_longer_each_time_where_nothing_but_NULL_is_answered) {
  PairSetup setup;
  setup.client.probe_after = 10s;
  Pair pair(setup);
  std::uint64_t connection = 0;
  int sent = 0;
  pair.record.tampering.fail_send = [&](End end) {
    if (end != End::Passive) return false;
    if (std::exchange(connection, pair.client_side.connects()) != pair.client_side.connects())
      sent = 0;
    return ++sent > 1;
  };
  CallOptions patient;
  patient.timeout = 60s;
  EXPECT_FALSE(pair.call<Fetch>({1, 10}, patient).ok());
  EXPECT_GT(pair.client_side.connects(), 5u);
  EXPECT_LT(pair.client_side.connects(), 40u) << "of pauses that double up to five seconds";
}

TEST(Establishing, is_the_reason_of_a_call_that_was_never_sent_when_it_fails) {
  Pair pair;
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  pair.loop.run(Pair::closing(*pair.server));
  pair.server.reset();
  ASSERT_TRUE(pair.loop.run_until([&] { return !pair.channel->limits(); }));
  CallOptions patient;
  patient.timeout = 3s;
  const auto unsent = pair.call<Fetch>({1, 10}, patient);
  ASSERT_FALSE(unsent.ok());
  EXPECT_EQ(unsent.error().reason, Reason::ConnectionRefused);
}

TEST(Establishing, leaves_open_whether_a_call_was_executed_only_if_it_was_sent) {
  PairSetup setup;
  setup.client.credits = 1;
  Pair pair(setup);
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  std::optional<CallResult<Blob>> sent, unsent;
  const auto fetch = [&](std::optional<CallResult<Blob>>& to) {
    detach([](Client& c, std::optional<CallResult<Blob>>& result) -> Task<void> {
      CallOptions patient;
      patient.timeout = 3s;
      result.emplace(co_await c.call<Fetch>({1, 10}, patient));
    }(*pair.client, to));
  };
  fetch(sent);
  fetch(unsent);
  pair.loop.run(Pair::closing(*pair.server));
  pair.server.reset();
  ASSERT_TRUE(pair.loop.run_until([&] { return sent && unsent; }));
  ASSERT_FALSE(sent->ok() || unsent->ok());
  EXPECT_TRUE(sent->error().sent);
  EXPECT_FALSE(unsent->error().sent);
  EXPECT_EQ(unsent->error().reason, Reason::ConnectionRefused);
}

TEST(Establishing, that_succeeds_while_the_client_closes_is_given_up) {
  Pair pair;
  bool closed = false;
  const auto close = [&]() -> Task<void> {
    co_await pair.channel->close();
    closed = true;
  };
  pair.record.tampering.connected = [&] { detach(close()); };
  EXPECT_FALSE(pair.call<Fetch>({1, 10}).ok());
  EXPECT_TRUE(pair.loop.run_until([&] { return closed; }));
  EXPECT_EQ(pair.client_side.connects(), 1u);
}

}  // namespace
}  // namespace stag::rpc::rdma
