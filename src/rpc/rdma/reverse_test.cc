// Calls of the server to the client (RFC 8167), seen on the wire.
#include <gtest/gtest.h>

#include "base/task_group.h"
#include "testing/rdma_pair.h"

namespace stag::rpc::rdma {
namespace {

using namespace std::chrono_literals;

PairSetup reverse_setup() {
  PairSetup setup;
  setup.serves_reverse = true;
  return setup;
}

Task<void> fetch_from_client(Client& caller, std::uint32_t seed, std::uint32_t length, int& good) {
  auto blob = co_await caller.call<Fetch>({seed, length});
  good += blob.ok() && blob->data == pattern(seed, length);
}

TEST(Reverse, credits_are_Calls_that_the_client_takes_at_once) {
  PROVES("R8167-4.1-c");
  PairSetup setup = reverse_setup();
  setup.client.reverse_credits = 5;
  Pair pair(setup);
  Client caller = pair.caller();
  int good = 0;
  TaskGroup group;
  group.add(fetch_from_client(caller, 0, 10, good));
  EXPECT_TRUE(pair.loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(pair.replies(End::Active).at(0).header.credits, 5u);
  pair.record.clear();
  for (std::uint32_t i = 1; i <= 20; ++i) group.add(fetch_from_client(caller, i, 100, good));
  EXPECT_EQ(pair.calls(End::Passive).size(), 5u) << "a whole burst, and no more";
  EXPECT_TRUE(pair.loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 21);
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
}

// Receives that `end` had posted on its connection before the first message left or came.
std::uint64_t receives_at_first(const Record& record, End end, std::uint32_t connection) {
  std::uint64_t receives = 0;
  for (const Recorded& entry : record.log()) {
    if (entry.end != end || entry.connection != connection) continue;
    if (entry.act == Act::Send || entry.act == Act::Receive) break;
    if (entry.act == Act::Credit) receives += entry.length;
  }
  return receives;
}

TEST(Reverse, and_forward_Receives_are_posted_before_a_new_connection_is_used) {
  PROVES("R8167-4.3.1-b", "R8167-4.3.2-c");
  PairSetup setup = reverse_setup();
  setup.client.credits = 20;
  setup.client.reverse_credits = 6;
  setup.server.credits = 30;
  setup.server.reverse_credits = 7;
  Pair pair(setup);
  Client caller = pair.caller();
  int good = 0;
  TaskGroup group;
  for (std::uint32_t i = 0; i < 10; ++i) group.add(fetch_from_client(*pair.client, i, 5000, good));
  pair.network.lose_connections();
  EXPECT_TRUE(pair.loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 10);
  ASSERT_EQ(pair.client_side.connects(), 2u);
  for (const std::uint32_t connection : {1u, 2u}) {
    EXPECT_GE(receives_at_first(pair.record, End::Active, connection), 20u + 6);
    EXPECT_GE(receives_at_first(pair.record, End::Passive, connection), 30u + 7);
  }
}

TEST(Reverse, messages_say_which_Call_they_are_and_which_way_they_go) {
  PROVES("R8167-5.1-a", "R8167-5.1-e", "R8167-5.2-e");
  Pair pair(reverse_setup());
  Client caller = pair.caller();
  int good = 0;
  TaskGroup group;
  for (std::uint32_t i = 0; i < 30; ++i) group.add(fetch_from_client(caller, i, i * 10, good));
  EXPECT_TRUE(pair.loop.run_until([&] { return group.running() == 0; }));
  EXPECT_EQ(good, 30);
  std::set<std::uint32_t> xids;
  for (const WireMessage& call : pair.messages(End::Passive)) {
    if (call.word(1) == 1) continue;  // of the forward direction
    EXPECT_EQ(call.word(1), 0u);
    EXPECT_EQ(call.word(0), call.header.xid);
    EXPECT_TRUE(xids.insert(call.header.xid).second) << "an XID was used before";
  }
  EXPECT_EQ(xids.size(), 30u);
  std::size_t answered = 0;
  for (const WireMessage& reply : pair.messages(End::Active)) {
    if (xids.count(reply.header.xid) == 0) continue;
    EXPECT_EQ(reply.word(1), 1u);
    ++answered;
  }
  EXPECT_EQ(answered, 30u);
}

TEST(Reverse, Calls_are_Short_Messages_where_chunks_are_forbidden) {
  PROVES("R8167-5.3-c");
  PairSetup setup = reverse_setup();
  setup.server.reverse_chunks = false;
  Pair pair(setup);
  Client caller = pair.caller();
  pair.record.clear();
  for (const std::uint32_t length : {0u, 100u, 10000u, 16000u})
    EXPECT_TRUE(pair.loop.run(caller.call<Fetch>({1, length})).ok()) << length;
  for (const std::uint32_t length : {17000u, 100000u}) {
    auto blob = pair.loop.run(caller.call<Fetch>({1, length}));
    ASSERT_FALSE(blob.ok()) << length;
    EXPECT_EQ(blob.error().reason, Reason::RdmaChunksForbidden);
    EXPECT_FALSE(pair.loop.run(caller.call<Store>({1, pattern(1, length)})).ok()) << length;
    EXPECT_FALSE(pair.loop.run(caller.call<StoreWhole>({1, pattern(1, length)})).ok()) << length;
  }
  for (const End end : {End::Active, End::Passive}) {
    EXPECT_EQ(pair.messages(end).size(), 4u);
    for (const WireMessage& message : pair.messages(end)) {
      EXPECT_EQ(message.header.proc, rpcrdma::RDMA_MSG);
      EXPECT_TRUE(message.handles().empty());
      EXPECT_LE(message.size, 16384u);
    }
  }
  EXPECT_TRUE(pair.call<Fetch>({1, 100000}).ok()) << "the forward direction is as before";
}

TEST(Reverse, Calls_with_chunks_are_refused_by_a_client_that_serves_none) {
  PairSetup setup = reverse_setup();
  setup.client.reverse_chunks = false;
  Pair pair(setup);
  Client caller = pair.caller();
  auto blob = pair.loop.run(caller.call<Fetch>({1, 100000}));
  ASSERT_FALSE(blob.ok());
  EXPECT_EQ(blob.error().reason, Reason::RdmaPeerRefusedChunks);
  EXPECT_TRUE(pair.loop.run(caller.call<Fetch>({1, 1000})).ok());
}

TEST(Reverse, Calls_that_lose_their_connection_do_not_make_the_server_connect) {
  PROVES("R8167-5.4-b");
  Pair pair(reverse_setup());
  Client caller = pair.caller();
  std::optional<CallResult<Blob>> result;
  detach([](Client& from, std::optional<CallResult<Blob>>& to) -> Task<void> {
    to.emplace(co_await from.call<Fetch>({1, 100000}));
  }(caller, result));
  pair.network.lose_connections();
  EXPECT_TRUE(pair.loop.run_until([&] { return result.has_value(); }));
  EXPECT_FALSE(result->ok());
  pair.loop.run_for(1min);
  EXPECT_EQ(pair.server_side.connects(), 0u);
  EXPECT_EQ(pair.client_side.connects(), 2u) << "it is the client that comes back";
}

TEST(Reverse, Calls_find_a_client_that_has_been_idle_or_cut_off) {
  PROVES("R8167-5.4-c", "R8167-2.2-a");
  Pair pair(reverse_setup());
  Client caller = pair.caller();
  pair.loop.run_for(2h);
  EXPECT_TRUE(pair.loop.run(caller.call<Fetch>({1, 10})).ok()) << "the connection was kept";
  EXPECT_EQ(pair.client_side.connects(), 1u);
  for (std::uint32_t losses = 1; losses <= 3; ++losses) {
    pair.network.lose_connections();
    // No caller makes a call, but the client comes back and says so.
    EXPECT_TRUE(pair.loop.run_until(
        [&] {
          return pair.client_side.connects() == losses + 1 && pair.network.open_connections() == 2;
        },
        10min));
    pair.loop.run_for(1min);
    EXPECT_GT(pair.replies(End::Passive).back().connection, losses);
  }
}

TEST(Reverse, Calls_are_none_before_the_client_asks_for_them) {
  PROVES("R8167-6-a");
  for (const bool could_serve_them : {false, true}) {
    PairSetup setup;
    setup.serves_reverse = could_serve_them;
    Pair pair(setup);
    for (std::uint32_t i = 0; i < 50; ++i) ASSERT_TRUE(pair.call<Fetch>({i, i * 3000}).ok());
    pair.network.lose_connections();
    ASSERT_TRUE(pair.call<Fetch>({1, 1000}).ok());
    pair.loop.run_for(1h);
    EXPECT_TRUE(pair.calls(End::Passive).empty());
    if (!could_serve_them) continue;
    // Greet is how this upper layer asks for them, and it does so for its own connection.
    Client caller = pair.caller();
    ASSERT_TRUE(pair.loop.run(caller.call<Fetch>({1, 10})).ok());
    EXPECT_EQ(pair.calls(End::Passive).size(), 1u);
    pair.network.lose_connections();
    ASSERT_TRUE(pair.call<Fetch>({1, 1000}).ok());
    EXPECT_FALSE(pair.loop.run(caller.call<Fetch>({1, 10})).ok());
    pair.loop.run_for(1h);
    EXPECT_EQ(pair.client_side.connects(), 3u);
    for (const WireMessage& call : pair.calls(End::Passive)) EXPECT_EQ(call.connection, 2u);
  }
}

TEST(Reverse, Calls_reduce_only_what_their_binding_lets_move) {
  PROVES("R8167-7-a");
  Pair pair(reverse_setup());
  Client caller = pair.caller();
  pair.record.clear();
  ASSERT_TRUE(pair.loop.run(caller.call<StoreWhole>({1, pattern(1, 100000)})).ok());
  ASSERT_TRUE(pair.loop.run(caller.call<FetchWhole>({1, 100000})).ok());
  for (const WireMessage& call : pair.calls(End::Passive)) {
    for (const rpcrdma::ReadChunk& chunk : call.header.read_list) EXPECT_EQ(chunk.position, 0u);
    EXPECT_TRUE(call.header.write_list.empty());
  }
  pair.record.clear();
  ASSERT_TRUE(pair.loop.run(caller.call<Store>({1, pattern(1, 100000)})).ok());
  ASSERT_TRUE(pair.loop.run(caller.call<Fetch>({1, 100000})).ok());
  const auto calls = pair.calls(End::Passive);
  ASSERT_EQ(calls.at(0).header.read_list.size(), 1u);
  EXPECT_NE(calls[0].header.read_list[0].position, 0u);
  EXPECT_EQ(calls.at(1).header.write_list.size(), 1u);
}

TEST(Reverse, Calls_have_credentials_of_their_own) {
  PROVES("R8167-8-a");
  Pair pair(reverse_setup());
  pair.client.emplace(*pair.channel, kPairBinding, Credentials::sys("client", 1001, 1001));
  Client nobody = pair.caller();
  ASSERT_TRUE(pair.loop.run(nobody.call<Fetch>({1, 10})).ok());
  Client somebody = pair.caller(Credentials::sys("server", 7, 7));
  ASSERT_TRUE(pair.loop.run(somebody.call<Fetch>({1, 10})).ok());
  // The flavor is the seventh word of a Call.
  for (const WireMessage& call : pair.calls(End::Active)) EXPECT_EQ(call.word(6), 1u);
  const auto calls = pair.calls(End::Passive);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].word(6), 0u);
  EXPECT_EQ(calls[1].word(6), 1u);
}

}  // namespace
}  // namespace stag::rpc::rdma
