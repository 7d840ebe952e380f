// When memory is within the peer's reach, and when it is not any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fabric/kept_ranges.h"
#include "testing/rdma_pair.h"

namespace stag::rpc::rdma {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

// What the last decoder of results should be noted in.
Record* decoding = nullptr;

// As its namesakes, but it tells when its results are looked at.
template <class P>
struct Traced : P {
  static bool decode_results(xdr::Decoder& decoder, typename P::Results& results) {
    decoding->note("decode");
    return P::decode_results(decoder, results);
  }
};

// A call ends and its results are decoded only when nothing of it can be reached.
template <class P>
void expect_cut_off_before_decoding(const typename P::Args& args, std::uint32_t slow_permille) {
  PairSetup setup;
  setup.client.transport.remote_invalidation = slow_permille == 0;
  setup.sim.faults.pending_revocation_permille = slow_permille;
  Pair pair(setup);
  decoding = &pair.record;
  ASSERT_TRUE(pair.call<Traced<P>>(args).ok());
  const auto handles = pair.record.exposed(End::Active);
  ASSERT_FALSE(handles.empty());
  const std::size_t decoded =
      pair.record.first([](const Recorded& entry) { return entry.act == Act::Note; });
  ASSERT_NE(decoded, Record::kNever);
  for (const std::uint32_t handle : handles)
    EXPECT_LT(pair.record.first(Act::Revoked, End::Active, handle, 0), decoded);
}

TEST(Exposure, ends_before_the_results_of_a_call_are_decoded) {
  PROVES("R8166-4.4.1-a", "R8166-8.1.3-b");
  for (const std::uint32_t slow : {0u, 1000u}) {
    expect_cut_off_before_decoding<Store>({1, pattern(1, 100000)}, slow);
    expect_cut_off_before_decoding<Fetch>({1, 100000}, slow);
    expect_cut_off_before_decoding<StoreWhole>({1, pattern(1, 100000)}, slow);
    expect_cut_off_before_decoding<FetchWhole>({1, 100000}, slow);
    expect_cut_off_before_decoding<Echo>({1, pattern(1, 100000)}, slow);
  }
}

// The word of an inline Call of Fetch, counted from the start of the RPC message.
void rewrite_call(std::vector<std::byte>& message, std::size_t word, std::uint32_t value) {
  const auto header = rpcrdma::decode_header(message);
  ASSERT_TRUE(header.ok());
  store_be<std::uint32_t>(message.data() + header->size + 4 * word, value);
}

Task<void> fetch_once(Pair& pair, bool& ended) {
  const Wanted wanted{1, 100000};
  const auto blob = co_await pair.client->call<Fetch>(wanted);
  if (blob.ok()) {
    EXPECT_TRUE(blob->data.empty());
  }
  ended = true;
}

TEST(Exposure, ends_before_the_memory_of_results_that_did_not_come_is_anybody_elses) {
  constexpr std::size_t kProcedure = 5, kLength = 11;
  for (const std::size_t word : {kProcedure, kLength}) {
    PairSetup setup;
    setup.client.transport.remote_invalidation = false;
    setup.sim.faults.pending_revocation_permille = 1000;
    Pair pair(setup);
    const std::byte* exposed = nullptr;
    pair.record.tampering.sink_exposed = [&](Bytes sink) { exposed = sink.data(); };
    // An error, or no bytes.
    pair.record.tampering.rewrite_send = [word](End from, std::vector<std::byte>& message) {
      if (from == End::Active) rewrite_call(message, word, word == kProcedure ? 99 : 0);
    };
    bool ended = false;
    detach(fetch_once(pair, ended));
    ASSERT_TRUE(pair.loop.run_until(
        [&] { return pair.record.first(Act::Receive, End::Active) != Record::kNever; }));
    ASSERT_EQ(pair.record.first(Act::Revoked, End::Active), Record::kNever);
    {
      const Block next = Block::allocate(100000);
      EXPECT_NE(next.data(), exposed);
    }
    ASSERT_TRUE(pair.loop.run_until([&] { return ended; }));
    EXPECT_NE(pair.record.first(Act::Revoked, End::Active), Record::kNever);
    EXPECT_EQ(pair.record.count(Act::Write, End::Passive), 0u);
  }
}

// What checks the integrity of a message stands above the Channel.
Task<void> call_below_the_client(Pair& pair, CallMessage& message, bool& ended) {
  auto reply = co_await pair.channel->call(message);
  EXPECT_TRUE(reply.ok());
  EXPECT_THAT(pair.record.reachable(End::Active), IsEmpty());
  ended = true;
}

TEST(Exposure, ends_before_a_Reply_reaches_whoever_checks_its_integrity) {
  PROVES("R8166-8.1.3-c");
  PairSetup setup;
  setup.sim.faults.pending_revocation_permille = 1000;
  setup.client.transport.remote_invalidation = false;  // the peer does not do it for us
  Pair pair(setup);
  CallMessage message;
  message.xid = pair.channel->next_xid();
  oncrpc::CallHeader header;
  header.xid = message.xid;
  header.program = kBlobProgram;
  header.version = 1;
  header.procedure = Fetch::number;
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  Fetch::encode_args(encoder, {3, 100000});
  message.stream = std::move(encoder).finish();
  message.reply = ReplyBound{100, {{kBlobData, 100000}}};
  bool ended = false;
  detach(call_below_the_client(pair, message, ended));
  EXPECT_TRUE(pair.loop.run_until([&] { return ended; }));
  const auto handles = pair.record.exposed(End::Active);
  ASSERT_EQ(handles.size(), 1u);
  EXPECT_LT(pair.record.first(Act::Revoke, End::Active, handles[0], 0),
            pair.record.first(Act::Revoked, End::Active, handles[0], 0));
}

TEST(Exposure, ends_with_a_call_that_the_peer_refuses) {
  PROVES("R8166-4.5-h");
  for (const bool of_another_version : {false, true}) {
    PairSetup setup;
    setup.sim.faults.pending_revocation_permille = 1000;
    Pair pair(setup);
    if (of_another_version)
      pair.record.tampering.rewrite_send = [](End from, std::vector<std::byte>& bytes) {
        if (from == End::Active) store_be<std::uint32_t>(bytes.data() + 4, 7);
      };
    const auto refused = pair.call<Undersized>({1, 100000});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().reason,
              of_another_version ? Reason::RdmaPeerRefusedVersion : Reason::RdmaPeerRefusedChunks);
    EXPECT_EQ(pair.record.count(Act::Send, End::Active), 1u) << "not sent again";
    EXPECT_EQ(pair.record.exposed(End::Active).size(), 1u);
    EXPECT_THAT(pair.record.reachable(End::Active), IsEmpty());
    EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
  }
}

// Where the segments of a message lie.
std::set<std::pair<std::uint32_t, std::uint64_t>> places(const WireMessage& message) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> all;
  const auto add = [&all](const rpcrdma::Segments& segments) {
    for (const auto& segment : segments) all.emplace(segment.handle, segment.offset);
  };
  for (const rpcrdma::ReadChunk& chunk : message.header.read_list) add(chunk.segments);
  for (const rpcrdma::WriteChunk& chunk : message.header.write_list) add(chunk.segments);
  if (message.header.reply_chunk) add(message.header.reply_chunk->segments);
  return all;
}

TEST(Exposure, is_never_that_of_the_servers_memory) {
  PROVES("R8166-3.1-a");
  PairSetup setup;
  setup.sim.max_registration = 16384;  // chunks of several segments
  Pair pair(setup);
  CallOptions options;
  options.timeout = 10s;
  EXPECT_TRUE(pair.call<Store>({1, pattern(1, 100000)}, options).ok());
  EXPECT_TRUE(pair.call<Fetch>({1, 100000}, options).ok());
  EXPECT_TRUE(pair.call<StoreWhole>({1, pattern(1, 100000)}, options).ok());
  EXPECT_TRUE(pair.call<FetchWhole>({1, 100000}, options).ok());
  EXPECT_TRUE(pair.call<Echo>({1, pattern(1, 100000)}, options).ok());
  EXPECT_TRUE(pair.call<FetchTwo>({50000, 0}, options).ok());
  EXPECT_TRUE(pair.call<Surprise>({1, 10}, options).ok()) << "its Reply chunk stays unused";
  EXPECT_THAT(pair.record.exposed(End::Passive), IsEmpty());
  std::map<std::uint32_t, std::set<std::pair<std::uint32_t, std::uint64_t>>> offered;
  for (const WireMessage& call : pair.messages(End::Active))
    offered[call.header.xid] = places(call);
  EXPECT_EQ(pair.messages(End::Passive).size(), 7u);
  for (const WireMessage& reply : pair.messages(End::Passive)) {
    EXPECT_TRUE(reply.header.read_list.empty());
    for (const auto& place : places(reply)) EXPECT_EQ(offered[reply.header.xid].count(place), 1u);
  }
}

TEST(Exposure, lasts_for_a_Read_chunk_until_the_Reply_is_there) {
  PROVES("R8166-2.3.2-e", "R8166-3.4.5.1-c");
  PairSetup setup;
  setup.sim.latency = 1s;
  setup.client.transport.remote_invalidation = false;
  Pair pair(setup);
  for (std::uint32_t i = 0; i < 3; ++i) {
    pair.record.clear();
    auto stored = pair.call<Store>({i, pattern(i, 200000)});
    ASSERT_TRUE(stored.ok());
    EXPECT_TRUE(stored->intact);
    const auto handles = pair.record.exposed(End::Active);
    ASSERT_EQ(handles.size(), 1u);
    const std::size_t replied = pair.record.first(Act::Receive, End::Active);
    EXPECT_LT(pair.record.first(Act::Read, End::Passive, handles[0], 0), replied);
    EXPECT_GT(pair.record.first(Act::Revoke, End::Active, handles[0], 0), replied);
    EXPECT_LT(pair.record.first(Act::Revoke, End::Active, handles[0], 0), Record::kNever);
  }
}

// Pages of our own, so that nothing else lies in them.
class Pages {
 public:
  explicit Pages(std::size_t size)
      : bytes_(static_cast<std::byte*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
               size) {
    STAG_CHECK(bytes_.data() != MAP_FAILED);
  }
  ~Pages() { ::munmap(bytes_.data(), bytes_.size()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  MutableBytes bytes() { return bytes_; }

 private:
  MutableBytes bytes_;
};

TEST(Exposure, is_a_time_in_which_the_requester_does_not_touch_the_memory) {
  PROVES("R8166-4.4.1-b");
  constexpr std::uint32_t kLength = 1 << 18;
  Pages arguments(kLength), results(kLength);
  pattern(5, kLength).copy_to(arguments.bytes());
  for (const bool invalidation : {false, true}) {
    PairSetup setup;
    setup.client.transport.remote_invalidation = invalidation;
    Pair pair(setup);
    pair.record.tampering.guard = true;  // a touch ends the process
    auto stored = pair.call<Store>({5, Rope::borrow(arguments.bytes())});
    ASSERT_TRUE(stored.ok());
    EXPECT_TRUE(stored->intact);
    const ResultBuffer result_buffers[] = {{kBlobData, results.bytes()}};
    CallOptions options;
    options.result_buffers = result_buffers;
    auto blob = pair.call<Fetch>({6, kLength}, options);
    ASSERT_TRUE(blob.ok());
    EXPECT_EQ(Rope::borrow(results.bytes()), pattern(6, kLength));
    EXPECT_EQ(blob->data.pieces().front().data(), results.bytes().data());
  }
}

// A Reply may end the call while its Send is still queued: nothing of it may be the caller's.
TEST(Exposure, is_not_what_happens_to_arguments_that_go_inline) {
  Pair pair;
  const std::vector<std::byte> callers(3000, std::byte{7});
  ASSERT_TRUE(pair.call<Store>({1, Rope::borrow(callers)}).ok());
  ASSERT_TRUE(pair.call<StoreWhole>({1, Rope::borrow(callers)}).ok());
  EXPECT_TRUE(pair.record.exposed(End::Active).empty());
  ASSERT_EQ(pair.calls(End::Active).size(), 2u);
  for (const Recorded& entry : pair.record.log())
    EXPECT_FALSE(entry.act == Act::Send && entry.note == "borrowed");
}

Task<void> fetch_into(Pair& pair, MutableBytes memory, CancelToken cancel,
                      std::optional<Reason>& failure, std::size_t& ended_at) {
  const ResultBuffer result_buffers[] = {{kBlobData, memory}};
  CallOptions options;
  options.result_buffers = result_buffers;
  options.cancel = cancel;
  auto blob =
      co_await pair.client->call<Fetch>({1, static_cast<std::uint32_t>(memory.size())}, options);
  EXPECT_FALSE(blob.ok());
  if (!blob) failure = blob.error().reason;
  ended_at = pair.record.log().size();
}

TEST(Exposure, ends_for_a_cancelled_call_before_its_memory_is_anybody_elses) {
  PROVES("R8166-4.4.1-c", "R8166-8.1.3-d");
  for (const std::uint32_t slow : {0u, 1000u}) {
    PairSetup setup;
    setup.sim.latency = 1s;
    setup.sim.faults.pending_revocation_permille = slow;
    Pair pair(setup);
    ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
    pair.record.clear();
    std::vector<std::byte> memory(100000);
    CancelSource source;
    std::optional<Reason> failure;
    std::size_t ended_at = 0;
    detach(fetch_into(pair, memory, source, failure, ended_at));
    // The result is on its way.
    ASSERT_TRUE(pair.loop.run_until(
        [&] { return pair.record.first(Act::Write, End::Passive) != Record::kNever; }));
    source.cancel();
    ASSERT_TRUE(pair.loop.run_until([&] { return failure.has_value(); }));
    EXPECT_EQ(failure, Reason::Cancelled);
    const std::uint32_t handle = pair.record.exposed(End::Active).at(0);
    EXPECT_LT(pair.record.first(Act::Abandon, End::Active, handle, 0), ended_at);
    EXPECT_LT(pair.record.first(Act::Revoked, End::Active, handle, 0), ended_at);
    std::fill(memory.begin(), memory.end(), std::byte{0x5a});
    ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
    EXPECT_EQ(static_cast<std::size_t>(std::count(memory.begin(), memory.end(), std::byte{0x5a})),
              memory.size())
        << "what came late was dropped";
    EXPECT_NE(pair.record.first(Act::Revoke, End::Active, handle, ended_at), Record::kNever)
        << "and with the late Reply nothing can come any more";
  }
}

// On a fabric that cannot drop what the peer writes to memory taken back.
PairSetup undiscarding() {
  PairSetup setup;
  setup.sim.latency = 1s;
  setup.sim.discards = false;
  return setup;
}

TEST(Exposure, lasts_for_a_call_given_up_until_its_Reply_where_the_fabric_discards_nothing) {
  Pair pair(undiscarding());
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  pair.record.clear();
  std::vector<std::byte> memory(100000, std::byte{0x5a});
  CancelSource source;
  std::optional<Reason> failure;
  std::size_t ended_at = 0;
  detach(fetch_into(pair, memory, source, failure, ended_at));
  ASSERT_TRUE(pair.loop.run_until(
      [&] { return pair.record.first(Act::Write, End::Passive) != Record::kNever; }));
  source.cancel();
  ASSERT_TRUE(pair.loop.run_until([&] { return failure.has_value(); }));
  EXPECT_EQ(failure, Reason::Cancelled);
  const std::uint32_t handle = pair.record.exposed(End::Active).at(0);
  EXPECT_EQ(pair.record.first(Act::Revoke, End::Active, handle, 0), Record::kNever);
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  EXPECT_NE(pair.record.first(Act::Revoke, End::Active, handle, ended_at), Record::kNever);
  EXPECT_EQ(pair.record.count(Act::Abandon, End::Active), 0u);
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0x5a}), 100000)
      << "the caller who may leave was not written to";
}

// Decision 0078.
TEST(Exposure, ends_for_kept_memory_with_its_cancelled_call_even_at_the_connections_expense) {
  Pair pair(undiscarding());
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  pair.record.clear();
  std::vector<std::byte> memory(100000);
  const fabric::KeptRange range{memory, true};
  const auto& ranges = fabric::KeptRanges::of_this_thread();
  ASSERT_EQ(ranges->keep(range), Reason::None);
  CancelSource source;
  std::optional<Reason> failure;
  std::size_t ended_at = 0;
  detach(fetch_into(pair, memory, source, failure, ended_at));
  ASSERT_TRUE(pair.loop.run_until(
      [&] { return pair.record.first(Act::Write, End::Passive) != Record::kNever; }));
  source.cancel();
  ASSERT_TRUE(pair.loop.run_until([&] { return failure.has_value(); }));
  EXPECT_EQ(failure, Reason::Cancelled);
  const std::uint32_t handle = pair.record.exposed(End::Active).at(0);
  EXPECT_LT(pair.record.first(Act::Revoke, End::Active, handle, 0), ended_at);
  std::fill(memory.begin(), memory.end(), std::byte{0x5a});
  EXPECT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok()) << "on another connection";
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 1u);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0x5a}), 100000);
  ranges->give_up(range);
}

TEST(Exposure, needs_a_waiting_caller_for_its_memory_where_the_fabric_discards_nothing) {
  Pair pair(undiscarding());
  std::vector<std::byte> memory(100000);
  const ResultBuffer result_buffers[] = {{kBlobData, memory}};
  CallOptions options;
  options.result_buffers = result_buffers;
  for (const Duration timeout : {Duration::zero(), Duration(100s)}) {
    options.timeout = timeout;
    const auto blob = pair.call<Fetch>({1, 100000}, options);
    ASSERT_TRUE(blob.ok());
    const bool placed = blob->data.pieces().front().data() == memory.data();
    EXPECT_EQ(placed, timeout == Duration::zero());
    EXPECT_EQ(blob->data, pattern(1, 100000));
  }
}

TEST(Exposure, ends_for_the_callers_arguments_with_the_call_even_at_the_connections_expense) {
  Pair pair(undiscarding());
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  pair.record.clear();
  const auto callers = std::make_unique<std::vector<std::byte>>(100000);
  CancelSource source;
  bool ended = false;
  const auto store = [](Pair* on, Bytes bytes, CancelToken cancel, bool* done) -> Task<void> {
    CallOptions options;
    options.cancel = cancel;
    const Blob blob{1, Rope::borrow(bytes)};
    const auto stored = co_await on->client->call<Store>(blob, options);
    EXPECT_FALSE(stored.ok());
    *done = true;
  };
  detach(store(&pair, *callers, source, &ended));
  ASSERT_TRUE(pair.loop.run_until(
      [&] { return pair.record.first(Act::Send, End::Active) != Record::kNever; }));
  source.cancel();
  ASSERT_TRUE(pair.loop.run_until([&] { return ended; }));
  const std::uint32_t handle = pair.record.exposed(End::Active).at(0);
  EXPECT_NE(pair.record.first(Act::Revoke, End::Active, handle, 0), Record::kNever);
  EXPECT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok()) << "on another connection";
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 1u);
}

TEST(Exposure, is_under_handles_that_serve_one_Call_only) {
  PROVES("R8166-8.1.2-b", "R8797-3.2-d");
  Pair pair;
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(pair.call<Store>({i, pattern(i, 100000)}).ok());
    ASSERT_TRUE(pair.call<Fetch>({i, 100000}).ok());
    ASSERT_TRUE(pair.call<Echo>({i, pattern(i, 100000)}).ok());
    ASSERT_TRUE(pair.call<FetchWhole>({i, 100000}).ok());
    EXPECT_THAT(pair.record.reachable(End::Active), IsEmpty());
  }
  const Recorded& request = pair.record[pair.record.first(Act::Connect, End::Active)];
  EXPECT_TRUE(rpcrdma::decode_private_data(request.bytes)->remote_invalidation);
  std::set<std::uint32_t> seen;
  for (const WireMessage& call : pair.calls(End::Active))
    for (const std::uint32_t handle : call.handles())
      EXPECT_TRUE(seen.insert(handle).second) << "offered in two Calls";
  EXPECT_EQ(seen.size(), 20u * 5);
}

TEST(Exposure, that_the_peer_has_ended_is_not_ended_again) {
  PROVES("R8797-3.2-e");
  Pair pair;
  std::uint32_t chosen = 0;
  pair.record.tampering.invalidate = [&](std::optional<std::uint32_t>) {
    const auto handles = pair.record.exposed(End::Active);
    chosen = handles.back();
    return std::optional<std::uint32_t>(chosen);
  };
  auto blob = pair.call<Echo>({4, pattern(4, 100000)});
  ASSERT_TRUE(blob.ok()) << blob.error().message();
  EXPECT_EQ(blob->data, pattern(4, 100000));
  const auto handles = pair.record.exposed(End::Active);
  ASSERT_EQ(handles.size(), 2u);
  EXPECT_EQ(pair.record.count(Act::Revoke, End::Active), 1u);
  EXPECT_NE(pair.record.first(Act::Revoke, End::Active, handles[0], 0), Record::kNever);
  EXPECT_EQ(pair.record.first(Act::Revoke, End::Active, chosen, 0), Record::kNever);
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
}

TEST(Exposure, is_ended_by_the_peer_only_when_both_sides_and_their_devices_can) {
  PROVES("R8797-3.2-c", "R8797-4.1-c");
  for (const int without : {0, 1, 2, 3, 4}) {
    PairSetup setup;
    setup.client.transport.remote_invalidation = without != 1;
    setup.server.transport.remote_invalidation = without != 2;
    setup.sim.remote_invalidation = without != 3;
    setup.sim.client_remote_invalidation = without != 4;
    Pair pair(setup);
    for (std::uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(pair.call<Fetch>({i, 100000}).ok());
    std::size_t invalidating = 0;
    for (const WireMessage& reply : pair.replies(End::Passive))
      invalidating += reply.invalidate.has_value();
    EXPECT_EQ(invalidating, without == 0 ? 5u : 0u) << without;
  }
}

TEST(Exposure, that_the_peer_was_not_told_to_end_costs_it_the_connection_when_it_does) {
  PROVES("R8797-3.2-d");
  PairSetup setup;
  setup.sim.client_remote_invalidation = false;
  setup.client.reconnect_for = 1s;
  Pair pair(setup);
  pair.record.tampering.invalidate = [&](std::optional<std::uint32_t>) {
    return std::optional<std::uint32_t>(pair.record.exposed(End::Active).back());
  };
  const std::uint64_t before = reason_counters().of(Reason::RdmaWrongHandleInvalidated);
  EXPECT_FALSE(pair.call<Fetch>({1, 100000}).ok());
  EXPECT_GT(reason_counters().of(Reason::RdmaWrongHandleInvalidated), before);
}

// As behind messages that the peer has not acknowledged yet.
TEST(Exposure, may_take_as_long_to_end_as_the_peer_may_take_for_what_is_sent_to_it) {
  PairSetup setup;
  setup.sim.latency = 3s;
  setup.sim.faults.pending_revocation_permille = 1000;
  setup.client.transport.remote_invalidation = false;
  Pair pair(setup);
  ASSERT_TRUE(pair.call<Fetch>({1, 100000}).ok());
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
}

TEST(Exposure, that_cannot_be_ended_costs_the_connection_before_the_call_ends) {
  PROVES("R8166-4.5.4-b");
  PairSetup setup;
  setup.client.transport.stall_limit = 10s;
  setup.sim.faults.pending_revocation_permille = 1000;
  setup.client.transport.remote_invalidation = false;
  Pair pair(setup);
  decoding = &pair.record;
  pair.record.tampering.keep_back_revoked = true;
  const TimePoint before = pair.loop.now();
  auto blob = pair.call<Traced<Fetch>>({1, 100000});
  EXPECT_TRUE(blob.ok()) << "the Reply was there";
  EXPECT_GE(pair.loop.now() - before, 10s);
  EXPECT_LT(pair.loop.now() - before, 11s);
  const std::size_t gone = pair.record.first(Act::Disconnect, End::Active);
  const std::size_t decoded =
      pair.record.first([](const Recorded& entry) { return entry.act == Act::Note; });
  EXPECT_LT(pair.record.first(Act::Receive, End::Active), gone);
  EXPECT_LT(gone, decoded);
  EXPECT_NE(decoded, Record::kNever);
}

}  // namespace
}  // namespace stag::rpc::rdma
