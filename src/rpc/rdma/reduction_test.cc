// What travels by chunk, seen on the wire, and what a Reply may not do with the chunks of its Call.
#include <gtest/gtest.h>

#include "testing/rdma_pair.h"

namespace stag::rpc::rdma {
namespace {

std::uint32_t room(const rpcrdma::WriteChunk& chunk) {
  return static_cast<std::uint32_t>(rpcrdma::total_length(chunk.segments));
}

TEST(Reduction, takes_an_eligible_argument_that_is_large_and_leaves_its_length_behind) {
  PROVES("R8166-3.4.2-b", "R8166-3.4.4.1-a");
  Pair pair;
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 100001)})->intact);
  ASSERT_TRUE(pair.call<Store>({1, pattern(1, 100)})->intact);
  const auto calls = pair.calls(End::Active);
  ASSERT_EQ(calls.size(), 2u);
  ASSERT_EQ(calls[0].header.read_list.size(), 1u);
  EXPECT_EQ(rpcrdma::total_length(calls[0].header.read_list[0].segments), 100001u);
  // RPC header, seed, length; then what followed the data.
  const std::size_t length_word = calls[0].header.read_list[0].position / 4 - 1;
  EXPECT_EQ(calls[0].word(length_word), 100001u);
  EXPECT_EQ(calls[0].word(length_word + 1), 0x600df00du);
  EXPECT_EQ(calls[0].payload.size(), 4 * (length_word + 2));
  EXPECT_TRUE(calls[1].header.read_list.empty());
  EXPECT_EQ(calls[1].payload.size(), 4 * (length_word + 2) + 100);
}

TEST(Reduction, is_not_for_what_the_binding_does_not_name) {
  PROVES("R8166-3.4.2-a", "R8166-6-a", "R8166-3.5.3-i", "R8166-3.5.3-j");
  Pair pair;
  ASSERT_TRUE(pair.call<StoreWhole>({1, pattern(1, 100001)})->intact);
  ASSERT_TRUE(pair.call<FetchWhole>({1, 100001}).ok());
  const auto calls = pair.calls(End::Active), replies = pair.replies(End::Passive);
  ASSERT_EQ(calls.at(0).header.read_list.size(), 1u);
  EXPECT_EQ(calls[0].header.read_list[0].position, 0u);
  EXPECT_EQ(rpcrdma::total_length(calls[0].header.read_list[0].segments), 40 + kBlobFrame + 100004);
  EXPECT_TRUE(calls[0].payload.empty());
  EXPECT_TRUE(calls.at(1).header.write_list.empty());
  EXPECT_EQ(room(*replies.at(1).header.reply_chunk), 24 + kBlobFrame + 100004);
}

TEST(Reduction, is_seen_from_what_the_Reply_says_for_the_second_result_alone) {
  PROVES("R8166-4.3.2.1-d", "R8166-4.3.2.2-f");
  Pair pair;
  auto two = pair.call<FetchTwo>({0, 50000});
  ASSERT_TRUE(two.ok()) << two.error().message();
  EXPECT_TRUE(two->first.empty());
  EXPECT_EQ(two->second, pattern(2, 50000));
  PairSetup setup;
  static constexpr std::array kTable{bind<FetchTwo>({}, {kFirst, kSecond}, [](const Wanted&) {
    return ReplyBound{8, {{kFirst, 60000}, {kSecond, 60000}}};
  })};
  setup.client_binding = Binding(kTable);
  Pair other(setup);
  two = other.call<FetchTwo>({0, 50000});
  ASSERT_TRUE(two.ok()) << two.error().message();
  EXPECT_TRUE(two->first.empty());
  EXPECT_EQ(two->second, pattern(2, 50000));
  const auto replies = other.replies(End::Passive);
  ASSERT_EQ(replies.at(0).header.write_list.size(), 2u);
  EXPECT_EQ(room(replies[0].header.write_list[0]), 0u) << "the first chunk is unused";
  EXPECT_EQ(room(replies[0].header.write_list[1]), 50000u);
}

TEST(Reduction, writes_all_results_before_it_sends_the_Reply) {
  PROVES("R8166-3.4.6-i");
  PairSetup setup;
  setup.sim.max_registration = 16384;  // chunks of four segments
  Pair pair(setup);
  ASSERT_TRUE(pair.call<Fetch>({1, 50000}).ok());
  ASSERT_TRUE(pair.call<FetchWhole>({1, 50000}).ok());
  std::vector<std::size_t> writes_before{0};  // each Send
  for (const Recorded& entry : pair.record.log()) {
    if (entry.end != End::Passive) continue;
    writes_before.back() += entry.act == Act::Write;
    if (entry.act == Act::Send) writes_before.push_back(0);
  }
  EXPECT_EQ(writes_before, (std::vector<std::size_t>{4, 4, 0}));
}

TEST(Reduction, pairs_results_with_chunks_as_the_binding_says) {
  static constexpr auto kEntry =
      bind<FetchTwo>({}, {kFirst, kSecond}, [](const Wanted& wanted) { return two_bound(wanted); });
  static constexpr std::array kByIndex{kEntry.paired(Pairing::ByIndex)};
  static constexpr std::array kShift{kEntry};
  const auto offered = [](Binding binding) {
    PairSetup setup;
    setup.client_binding = binding;
    Pair pair(setup);
    EXPECT_TRUE(pair.call<FetchTwo>({9000, 50000}).ok());
    const WireMessage call = pair.calls(End::Active).at(0);
    std::vector<std::uint32_t> rooms;
    for (const auto& chunk : call.header.write_list) rooms.push_back(room(chunk));
    return rooms;
  };
  EXPECT_EQ(offered(Binding(kByIndex)), (std::vector<std::uint32_t>{9000, 50000}));
  EXPECT_EQ(offered(Binding(kShift)), (std::vector<std::uint32_t>{50000, 50000}))
      << "the second may come in place of the first";
}

TEST(Reduction, ends_the_call_for_good_for_a_result_that_may_not_move) {
  PROVES("R8166-6.1-e");
  // The client lets the second result move, the server moves the first one.
  static constexpr std::array kClient{bind<FetchTwo>({}, {kSecond}, [](const Wanted&) {
    return ReplyBound{8 + 40000, {{kSecond, 40000}}};
  })};
  static constexpr std::array kServer{bind<FetchTwo>({}, {kFirst})};
  PairSetup setup;
  setup.client_binding = Binding(kClient);
  setup.server_binding = Binding(kServer);
  Pair pair(setup);
  for (const Wanted& wanted : {Wanted{20000, 20000}, Wanted{8000, 30000}, Wanted{20000, 100}}) {
    pair.record.clear();
    auto two = pair.call<FetchTwo>(wanted);
    ASSERT_FALSE(two.ok());
    EXPECT_EQ(two.error().reason, Reason::RpcResultsMalformed);
    EXPECT_EQ(pair.calls(End::Active).size(), 1u) << "not tried again";
    EXPECT_GT(pair.record.count(Act::Write, End::Passive), 0u);
  }
}

TEST(Reduction, left_undone_although_there_was_a_chunk_ends_the_call_for_good) {
  PROVES("R8166-6.1-f", "R8166-6.1-a");
  static constexpr std::array kServer{bind<Fetch>()};  // nothing may move
  static constexpr std::array kClient{bind<Fetch>({}, {kBlobData}, [](const Wanted&) {
    return ReplyBound{kBlobFrame, {{kBlobData, 100000}}};
  })};
  PairSetup setup;
  setup.client_binding = Binding(kClient);
  setup.server_binding = Binding(kServer);
  Pair pair(setup);
  // Copied into the message, or only referred to there.
  for (const std::uint32_t length : {1000u, 10000u}) {
    pair.record.clear();
    auto blob = pair.call<Fetch>({1, length});
    ASSERT_FALSE(blob.ok());
    EXPECT_EQ(blob.error().reason, Reason::RpcResultsMalformed);
    EXPECT_EQ(pair.calls(End::Active).size(), 1u) << "not tried again";
    EXPECT_EQ(pair.record.count(Act::Write, End::Passive), 0u);
  }
}

TEST(Reduction, uses_no_more_chunks_than_the_procedure_has_results) {
  PROVES("R8166-6.1-g");
  static constexpr std::array kTwoChunks{bind<Fetch>({}, {kBlobData}, [](const Wanted& wanted) {
    return ReplyBound{kBlobFrame, {{kBlobData, wanted.length}, {kBlobData, wanted.length}}};
  })};
  PairSetup setup;
  setup.client_binding = Binding(kTwoChunks);
  Pair pair(setup);
  auto blob = pair.call<Fetch>({1, 50000});
  ASSERT_TRUE(blob.ok()) << blob.error().message();
  EXPECT_EQ(blob->data, pattern(1, 50000));
  const auto reply = pair.replies(End::Passive).at(0);
  ASSERT_EQ(reply.header.write_list.size(), 2u);
  EXPECT_EQ(room(reply.header.write_list[0]), 50000u);
  EXPECT_EQ(room(reply.header.write_list[1]), 0u);
  EXPECT_EQ(pair.record.count(Act::Write, End::Passive), 1u);
}

TEST(Reduction, is_answered_with_GARBAGE_ARGS_if_it_leaves_less_than_the_length_word_says) {
  PROVES("R8166-4.5.2-e");
  Pair pair;
  pair.record.tampering.rewrite_send = [](End from, std::vector<std::byte>& bytes) {
    if (from != End::Active) return;
    // The length of the only read segment: after four words of header, 1, Position, handle.
    ASSERT_EQ(load_be<std::uint32_t>(bytes.data() + 28), 100000u);
    store_be<std::uint32_t>(bytes.data() + 28, 100000 - 4);
  };
  auto blob = pair.call<Echo>({1, pattern(1, 100000)});
  ASSERT_FALSE(blob.ok());
  const auto calls = pair.calls(End::Active), replies = pair.replies(End::Passive);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].header.proc, rpcrdma::RDMA_MSG);
  EXPECT_EQ(replies[0].word(0), calls.at(0).header.xid);
  EXPECT_EQ(replies[0].word(5), 4u) << "GARBAGE_ARGS";
  ASSERT_EQ(replies[0].header.write_list.size(), 1u) << "the chunks come back, unused";
  EXPECT_EQ(replies[0].header.write_list[0].segments[0].handle,
            calls[0].header.write_list[0].segments[0].handle);
  EXPECT_EQ(room(replies[0].header.write_list[0]), 0u);
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
}

TEST(Reduction, includes_the_pad_of_an_argument_only_where_that_is_asked_for) {
  PROVES("R8166-3.4.5.2-a", "R8166-3.4.5.2-b", "R8166-3.4.5.2-c", "R8166-3.4.5.2-e");
  for (const bool padded : {false, true}) {
    for (const std::uint32_t length : {5001u, 5002u, 5003u, 5004u}) {
      PairSetup setup;
      setup.client.transport.inline_size = 1024;
      setup.client.transport.pad_read_chunks = padded;
      Pair pair(setup);
      const auto stored = pair.call<Store>({1, pattern(1, length)});
      ASSERT_TRUE(stored.ok());
      EXPECT_TRUE(stored->intact);
      EXPECT_EQ(stored->length, length);
      const WireMessage call = pair.calls(End::Active).at(0);
      ASSERT_EQ(call.header.read_list.size(), 1u);
      EXPECT_EQ(rpcrdma::total_length(call.header.read_list[0].segments), padded ? 5004u : length);
      const std::size_t length_word = call.header.read_list[0].position / 4 - 1;
      EXPECT_EQ(call.word(length_word), length);
      EXPECT_EQ(call.word(length_word + 1), 0x600df00du) << "no pad is left inline";
    }
  }
}

// Replies of every length around the threshold, and the room that was offered for them.
TEST(Reduction, and_Reply_chunks_give_the_largest_Reply_its_room) {
  PROVES("R8166-6.2-b", "R8166-4.3.3-a", "R8267-3-a");
  PairSetup setup;
  setup.client.transport.inline_size = setup.server.transport.inline_size = 2048;
  Pair pair(setup);
  ASSERT_TRUE(pair.loop.run(pair.client->ping(kBlobProgram, 1)).ok());
  std::size_t with_chunk = 0;
  for (std::uint32_t length = 1900; length < 2100; ++length) {
    pair.record.clear();
    ASSERT_TRUE(pair.call<FetchWhole>({length, length}).ok()) << length;
    ASSERT_TRUE(pair.call<Fetch>({length, length}).ok()) << length;
    const auto calls = pair.calls(End::Active), replies = pair.replies(End::Passive);
    const std::uint32_t stream = 24 + kBlobFrame + (length + 3) / 4 * 4;
    // The largest Reply has its inline header before it.
    const bool needs_chunk = 28 + stream > 2048;
    ASSERT_EQ(calls.at(0).header.reply_chunk.has_value(), needs_chunk) << length;
    ASSERT_EQ(!calls.at(1).header.write_list.empty(), needs_chunk) << length;
    with_chunk += needs_chunk;
    if (!needs_chunk) continue;
    EXPECT_EQ(room(*calls[0].header.reply_chunk), stream) << length;
    EXPECT_EQ(room(*replies.at(0).header.reply_chunk), stream) << length;
    EXPECT_EQ(room(calls[1].header.write_list[0]), length);
  }
  EXPECT_GT(with_chunk, 50u);
  EXPECT_LT(with_chunk, 150u);
}

TEST(Reduction, is_refused_for_too_little_room_before_anything_is_written) {
  PROVES("R8267-3.1-f", "R8267-3.1-e");
  Pair pair;
  auto blob = pair.call<Undersized>({1, 100000});
  ASSERT_FALSE(blob.ok());
  EXPECT_EQ(blob.error().reason, Reason::RdmaPeerRefusedChunks);
  EXPECT_EQ(pair.calls(End::Active).size(), 1u) << "its binding does not let it be asked again";
  auto surprise = pair.call<Surprise>({1, 4 << 20});
  EXPECT_FALSE(surprise.ok());
  EXPECT_EQ(pair.record.count(Act::Write, End::Passive), 0u);
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
  EXPECT_EQ(pair.network.open_connections(), 2u);
}

// In 17 pieces with what is between them: more than a chunk may have segments, so that the stream
// is counted as a copy in one piece. Without one of the items it has few enough.
xdr::Stream stream_of_many_pieces(std::uint32_t xid, std::span<const xdr::ItemId> watched) {
  oncrpc::CallHeader header;
  header.xid = xid;
  header.program = kBlobProgram;
  header.version = 1;
  header.procedure = StoreWhole::number;
  xdr::Encoder encoder(watched);
  oncrpc::encode(encoder, header);
  for (std::uint32_t i = 0; i < 8; ++i)
    encoder.opaque(i == 3 ? watched[0] : xdr::kNoItem, pattern(i, 9000));
  encoder.u32(0);
  return std::move(encoder).finish();
}

TEST(Reduction, leaves_one_piece_beside_a_stream_that_has_too_many) {
  static constexpr std::array kWatched{kBlobData};
  PairSetup setup;
  setup.client.quirks = rpcrdma::PeerQuirks::none();
  Pair pair(setup);
  CallMessage message;
  message.xid = pair.channel->next_xid();
  message.stream = stream_of_many_pieces(message.xid, kWatched);
  ASSERT_EQ(message.stream.rope().pieces().size(), 17u);
  message.reply = ReplyBound{1000, {}};
  EXPECT_TRUE(pair.loop.run(pair.channel->call(message)).ok()) << "the server refuses it";
  const WireMessage call = pair.calls(End::Active).at(0);
  ASSERT_EQ(call.header.read_list.size(), 2u);
  EXPECT_EQ(call.header.read_list[0].position, 0u);
  EXPECT_LE(call.header.read_list[0].segments.size(), 2u) << "what the header was planned with";
  EXPECT_EQ(rpcrdma::total_length(call.header.read_list[0].segments), message.stream.size() - 9000);
  EXPECT_EQ(rpcrdma::total_length(call.header.read_list[1].segments), 9000u);
}

TEST(Reduction, is_tried_again_with_more_room_as_another_Call) {
  PROVES("R8267-3.1-c");
  Pair pair;
  ASSERT_TRUE(pair.call<Surprise>({1, 70000}).ok());
  const auto calls = pair.calls(End::Active);
  ASSERT_EQ(calls.size(), 3u);
  std::set<std::uint32_t> xids;
  for (const WireMessage& call : calls) {
    EXPECT_TRUE(xids.insert(call.header.xid).second);
    EXPECT_EQ(call.word(0), call.header.xid);
  }
  EXPECT_EQ(room(*calls[1].header.reply_chunk), 2 * room(*calls[0].header.reply_chunk));
}

}  // namespace
}  // namespace stag::rpc::rdma
