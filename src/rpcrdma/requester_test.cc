#include "rpcrdma/requester.h"

#include <gtest/gtest.h>

#include <deque>

#include "rpcrdma/recorder_test.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using namespace testing;
using Xids = std::vector<std::uint32_t>;
using Reasons = std::vector<Reason>;

// The header of the Call as it was sent.
Header sent_header(const Endpoint& client, std::size_t index = 0) {
  return decode_header(client.sink.call_headers[index])->header;
}

TEST(Requester, sends_one_Call_before_the_first_Reply_and_the_rest_after_its_grant) {
  PROVES("R8166-3.3.3-b", "R8166-3.3.3-c");
  std::deque<TestCall> calls;
  Endpoint client(client_settings());
  for (std::uint32_t xid = 1; xid <= 10; ++xid) client.core.on_call(calls.emplace_back(xid));
  EXPECT_EQ(client.sink.calls, (Xids{1}));
  // What is no valid Reply to it carries no grant.
  client.receive(short_reply(77, 5));
  client.receive(short_call(1, 5));
  EXPECT_EQ(client.sink.calls, (Xids{1}));
  client.receive(short_reply(1, 5));
  EXPECT_EQ(client.sink.calls, (Xids{1, 2, 3, 4, 5, 6}));
}

TEST(Requester, never_has_more_Calls_on_the_wire_than_were_requested_or_granted) {
  PROVES("R8166-3.3.1-a", "R8166-3.3.1-c");
  for (const auto& [requested, granted] : {std::pair{4u, 16u}, std::pair{16u, 4u}}) {
    std::deque<TestCall> calls;
    Endpoint client(client_settings(requested));
    for (std::uint32_t xid = 1; xid <= 40; ++xid) client.core.on_call(calls.emplace_back(xid));
    for (std::uint32_t xid = 1; xid <= 40; ++xid) {
      client.receive(short_reply(xid, granted));
      EXPECT_LE(client.core.requester().in_flight(), 4u);
      EXPECT_EQ(client.core.requester().in_flight(), std::min(4u, 40 - xid));
    }
    EXPECT_EQ(client.sink.replies.size(), 40u);
  }
}

TEST(Requester, follows_the_grant_of_the_latest_Reply_up_and_down) {
  PROVES("R8166-3.3.1-d", "R8166-3.3.1-f", "R8166-3.3.1-g");
  std::deque<TestCall> calls;
  Endpoint client(client_settings(64));
  for (std::uint32_t xid = 1; xid <= 60; ++xid) client.core.on_call(calls.emplace_back(xid));
  client.receive(short_reply(1, 8));
  EXPECT_EQ(client.sink.calls.size(), 9u);
  // Out of order: the grant that came last is in force, whichever Call it answers.
  client.receive(short_reply(9, 2));
  for (std::uint32_t xid = 2; xid <= 6; ++xid) {
    client.receive(short_reply(xid, 2));
    EXPECT_EQ(client.sink.calls.size(), 9u) << "7 or fewer in flight, but more than the grant";
  }
  EXPECT_EQ(client.core.requester().in_flight(), 2u);
  client.receive(short_reply(7, 2));
  EXPECT_EQ(client.sink.calls.size(), 10u);
  client.receive(short_reply(8, 32));
  EXPECT_EQ(client.core.requester().in_flight(), 32u);
}

TEST(Requester, takes_a_grant_of_zero_for_one) {
  std::deque<TestCall> calls;
  Endpoint client(client_settings());
  for (std::uint32_t xid = 1; xid <= 3; ++xid) client.core.on_call(calls.emplace_back(xid));
  client.receive(short_reply(1, 0));
  client.receive(short_reply(2, 0));
  EXPECT_EQ(client.sink.calls, (Xids{1, 2, 3}));
  EXPECT_TRUE(client.sink.closes.empty());
}

TEST(Requester, asks_for_the_same_number_of_credits_in_every_Call) {
  PROVES("R8166-4.2.3-a", "R8166-3.3.1-e", "R8166-4.2.2-a");
  std::deque<TestCall> calls;
  Endpoint client(client_settings(17));
  for (std::uint32_t xid = 1; xid <= 6; ++xid) client.core.on_call(calls.emplace_back(xid));
  for (std::uint32_t xid = 1; xid <= 6; ++xid) client.receive(short_reply(xid, 3));
  ASSERT_EQ(client.sink.call_headers.size(), 6u);
  for (const Message& header : client.sink.call_headers) {
    EXPECT_EQ(word(header, 1), 1u);
    EXPECT_EQ(word(header, 2), 17u);
  }
}

TEST(Requester, leaves_one_credit_to_probes) {
  std::deque<TestCall> calls;
  Settings settings = client_settings();
  settings.reserve_probe_credit = true;
  Endpoint client(settings);
  for (std::uint32_t xid = 1; xid <= 9; ++xid) client.core.on_call(calls.emplace_back(xid));
  client.receive(short_reply(1, 4));
  EXPECT_EQ(client.core.requester().in_flight(), 3u);
  calls.emplace_back(100).probe = true;
  client.core.on_call(calls.back());
  EXPECT_EQ(client.sink.calls.back(), 100u);
  EXPECT_EQ(client.core.requester().in_flight(), 4u);
  client.receive(short_reply(100, 1));
  for (std::uint32_t xid = 2; xid <= 4; ++xid) client.receive(short_reply(xid, 1));
  EXPECT_EQ(client.core.requester().in_flight(), 1u) << "a single credit is not reserved";
}

TEST(Requester, posts_a_Receive_for_every_Reply_before_it_sends) {
  PROVES("R8166-3.3.1-i");
  TestCall first(1), second(2);
  Endpoint client(client_settings(6));
  EXPECT_GE(client.sink.receives, 6u);
  client.core.on_call(first);
  client.core.on_call(second);
  const std::uint32_t before = client.sink.receives;
  client.receive(short_reply(1, 6));
  EXPECT_EQ(client.sink.receives, before + 1);
}

TEST(Requester, matches_Replies_by_XID_in_any_order) {
  PROVES("R8166-2.2.2-b", "R8166-4.2.1-a", "R8166-4.2.1-b");
  std::deque<TestCall> calls;
  Endpoint client(client_settings());
  for (std::uint32_t xid = 1; xid <= 5; ++xid) client.core.on_call(calls.emplace_back(xid));
  client.receive(short_reply(1, 8));
  for (std::uint32_t xid : {4u, 2u, 5u, 3u}) client.receive(short_reply(xid, 8));
  EXPECT_EQ(client.sink.replies, (Xids{1, 4, 2, 5, 3}));
  client.receive(short_reply(3, 8));
  EXPECT_EQ(client.sink.drops, (Reasons{Reason::RdmaReplyUnmatched}));
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(word(client.sink.call_headers[i], 0), client.sink.calls[i]);
}

TEST(Requester, refuses_a_Call_with_the_XID_of_one_on_the_wire) {
  PROVES("R8167-2.4-a");
  TestCall call(5), other(6), clash(6), again(5);
  Endpoint client(client_settings());
  client.core.on_call(call);
  client.receive(short_reply(5, 4));
  client.core.on_call(other);
  client.core.on_call(clash);
  client.core.on_call(again);
  EXPECT_EQ(client.sink.calls, (Xids{5, 6, 5}));
  ASSERT_EQ(client.sink.failures.size(), 1u);
  EXPECT_EQ(client.sink.failures[0].reason, Reason::RdmaOwnXidDuplicate);
}

TEST(Requester, registers_memory_only_when_the_Call_is_about_to_be_sent) {
  PROVES("R8166-8.1.3-a");
  TestCall first(1, 80, 5000), second(2, 80, 5000);
  Endpoint client(client_settings());
  client.core.on_call(first);
  client.core.on_call(second);
  EXPECT_EQ(client.sink.actions(), "expose call");
  client.receive(short_reply(1, 1));
  EXPECT_EQ(client.sink.actions(), "reply expose call");
}

TEST(Requester, sends_the_chunks_it_planned_and_nothing_else) {
  PROVES("R8166-3.4.5.2-e", "R8166-3.4.5-b", "R8166-4.3.1.1-a", "R8166-4.3.3-a");
  TestCall call(7, 112 + 5004 + 8 + 7004, 5000);
  Item large, larger;
  large.position = 112;
  large.length = 5001;
  large.segments = 2;
  larger.position = 112 + 5004 + 8;
  larger.length = 7001;
  call.shape.items = {large, larger};
  ResultBound result;
  result.max_length = 9000;
  call.bound.results.push_back(result);
  Settings settings = client_settings();
  settings.quirks = PeerQuirks::none();
  Endpoint client(settings);
  client.core.on_call(call);
  const Header header = sent_header(client);
  ASSERT_EQ(header.read_list.size(), 2u);
  EXPECT_EQ(header.read_list[0].position, 112u);
  EXPECT_EQ(header.read_list[0].segments.size(), 2u);
  EXPECT_EQ(total_length(header.read_list[0].segments), 5001u);
  EXPECT_EQ(header.read_list[1].position, 112u + 5004 + 8);
  EXPECT_EQ(total_length(header.read_list[1].segments), 7001u);
  ASSERT_EQ(header.write_list.size(), 1u);
  EXPECT_EQ(total_length(header.write_list[0].segments), 9000u);
  ASSERT_TRUE(header.reply_chunk.has_value());
  EXPECT_EQ(total_length(header.reply_chunk->segments), 5000u);
}

TEST(Requester, sends_a_Call_with_a_reduced_argument_as_one_RDMA_MSG) {
  PROVES("R8166-3.5.2-b");
  TestCall call(7, 112 + 5004);
  Item large;
  large.position = 112;
  large.length = 5001;
  call.shape.items = {large};
  Endpoint client(client_settings());
  client.core.on_call(call);
  EXPECT_EQ(client.sink.actions(), "expose call");
  EXPECT_EQ(sent_header(client).proc, RDMA_MSG);
  EXPECT_EQ(call.plan().form, Form::Inline);
  EXPECT_EQ(call.plan().stream_length, 112u);
}

TEST(Requester, sends_data_chunks_beside_Position_Zero_at_their_places_in_the_unreduced_stream) {
  PROVES("R8166-3.5.3-k");
  Item first, second;
  first.position = 112;
  first.length = 9000;
  second.position = 112 + 9000 + 8;
  second.length = 7000;
  TestCall call(7, 5000 + 9000 + 7000);
  call.shape.items = {first, second};
  Settings settings = client_settings();
  settings.quirks = PeerQuirks::none();
  Endpoint client(settings);
  client.core.on_call(call);
  const Header header = sent_header(client);
  EXPECT_EQ(header.proc, RDMA_NOMSG);
  ASSERT_EQ(header.read_list.size(), 3u);
  EXPECT_EQ(header.read_list[0].position, 0u);
  EXPECT_EQ(total_length(header.read_list[0].segments), 5000u);
  EXPECT_EQ(header.read_list[1].position, 112u);
  EXPECT_EQ(total_length(header.read_list[1].segments), 9000u);
  EXPECT_EQ(header.read_list[2].position, 9120u);
  EXPECT_EQ(total_length(header.read_list[2].segments), 7000u);
}

TEST(Requester, asks_for_one_of_several_results_inline_by_an_empty_Write_chunk_at_its_place) {
  PROVES("R8166-3.4.6-g", "R8166-4.3.2.3-b");
  TestCall call(7);
  ResultBound large, wanted;
  large.max_length = wanted.max_length = 100;
  large.max_length = 8000;
  wanted.wanted_inline = true;
  call.bound.results = {large, wanted, large};
  call.bound.pairing = Pairing::ByIndex;
  Endpoint client(client_settings());
  client.core.on_call(call);
  const Message& header = client.sink.call_headers[0];
  // No Read list; 1, one segment; 1, none; 1, one segment; end of the list; no Reply chunk.
  ASSERT_EQ(header.size(), 28u + 24 + 8 + 24);
  EXPECT_EQ(word(header, 5), 1u);
  EXPECT_EQ(word(header, 6), 1u);
  EXPECT_EQ(word(header, 11), 1u);
  EXPECT_EQ(word(header, 12), 0u);
  EXPECT_EQ(word(header, 13), 1u);
  EXPECT_EQ(word(header, 14), 1u);
  EXPECT_EQ(word(header, 19), 0u);
}

TEST(Requester, sends_no_Call_without_its_credit_its_Receive_and_its_memory) {
  PROVES("R8166-6.2-a");
  TestCall first(1), second(2, 80, 5000);
  Endpoint client(client_settings(6));
  EXPECT_GE(client.sink.receives, 6u);
  client.core.on_call(first);
  client.core.on_call(second);
  EXPECT_EQ(client.sink.calls, (Xids{1})) << "there is one credit";
  client.sink.refuse_memory = true;
  client.receive(short_reply(1, 6));
  EXPECT_EQ(client.sink.calls, (Xids{1}));
  EXPECT_EQ(client.sink.failed, (Xids{2}));
}

TEST(Requester, sends_a_Long_Call_as_RDMA_NOMSG_with_everything_at_Position_Zero) {
  PROVES("R8166-3.5.3-b", "R8166-3.5.3-c", "R8166-4.2.4-d");
  TestCall call(7, 70000);
  call.shape.segments = 3;
  Endpoint client(client_settings());
  client.core.on_call(call);
  const Header header = sent_header(client);
  EXPECT_EQ(header.proc, RDMA_NOMSG);
  ASSERT_EQ(header.read_list.size(), 1u);
  EXPECT_EQ(header.read_list[0].position, 0u);
  EXPECT_EQ(header.read_list[0].segments.size(), 3u);
  EXPECT_EQ(total_length(header.read_list[0].segments), 70000u);
  EXPECT_EQ(client.sink.call_headers[0].size(), 28u + 3 * 24) << "the header and nothing more";
  EXPECT_EQ(call.plan().form, Form::Long);
}

TEST(Requester, fails_a_Call_at_once_when_its_memory_cannot_be_registered) {
  PROVES("R8166-4.5.4-a");
  TestCall call(1, 80, 5000), next(2);
  Endpoint client(client_settings());
  client.sink.refuse_memory = true;
  client.core.on_call(call);
  EXPECT_EQ(client.sink.failed, (Xids{1}));
  EXPECT_TRUE(client.sink.calls.empty());
  client.core.on_call(next);
  EXPECT_EQ(client.sink.calls, (Xids{2})) << "no credit is lost";
}

TEST(Requester, fails_a_Call_that_cannot_be_planned) {
  TestCall call(1, 80, 5000);
  call.bound.segments = 17;
  Endpoint client(client_settings());
  client.core.on_call(call);
  ASSERT_EQ(client.sink.failures.size(), 1u);
  EXPECT_EQ(client.sink.failures[0].reason, Reason::RdmaSegmentsTooMany);
}

TEST(Requester, sends_Short_Messages_only_where_chunks_are_forbidden) {
  PROVES("R8167-5.3-c");
  TestCall plain(1), long_call(2, 5000), long_reply(3, 80, 5000), reduced(4, 112 + 5000 + 4);
  Item large;
  large.position = 112;
  large.length = 5000;
  reduced.shape.items = {large};
  Settings settings = client_settings();
  settings.requests_chunks = false;
  Endpoint client(settings);
  for (TestCall* call : {&long_call, &long_reply, &reduced, &plain}) client.core.on_call(*call);
  EXPECT_EQ(client.sink.failed, (Xids{2, 3, 4}));
  for (const CallFailure& failure : client.sink.failures)
    EXPECT_EQ(failure.reason, Reason::RdmaChunksForbidden);
  EXPECT_EQ(client.sink.calls, (Xids{1}));
  EXPECT_EQ(client.sink.actions().find("expose"), std::string::npos);
}

// A READ on the wire: Write chunk of 8 + 8 + 8 bytes, Reply chunk of 3000.
struct Reading {
  Reading() : call(9, 80, 3000), client(client_settings()) {
    ResultBound result;
    result.max_length = 3000;
    result.segments = 3;
    call.bound.results.push_back(result);
    client.core.on_call(call);
    header = sent_header(client);
    header.credits = 4;
    header.read_list.clear();
  }
  void returned(std::initializer_list<std::uint32_t> lengths, std::uint32_t reply = 0) {
    std::size_t i = 0;
    for (std::uint32_t length : lengths) header.write_list[0].segments[i++].length = length;
    header.reply_chunk->segments[0].length = reply;
  }
  void receive_reply() {
    client.receive(
        with_stream(header, header.proc == RDMA_MSG ? rpc_stream(9, REPLY, 48) : Message{}));
  }
  // The Reply is dropped and the Call is still pending.
  void expect_drop(Reason reason) {
    receive_reply();
    EXPECT_EQ(client.sink.drops, (Reasons{reason}));
    EXPECT_TRUE(client.sink.replies.empty());
    EXPECT_TRUE(client.sink.errors.empty());
    EXPECT_TRUE(client.sink.closes.empty());
    client.sink.drops.clear();
    EXPECT_EQ(client.core.requester().in_flight(), 1u);
  }

  TestCall call;
  Endpoint client;
  Header header;
};

TEST(Requester, adds_up_what_was_returned_in_a_Write_chunk) {
  PROVES("R8166-3.4.6.1-a", "R8166-3.4.4-b");
  Reading reading;
  reading.returned({1000, 17, 0});
  reading.receive_reply();
  ASSERT_EQ(reading.client.sink.reply_arrivals.size(), 1u);
  const ReplyArrival& arrival = reading.client.sink.reply_arrivals[0];
  EXPECT_EQ(arrival.written, (InlineVector<std::uint32_t, 2>{1017}));
  EXPECT_FALSE(arrival.long_reply);
}

TEST(Requester, takes_unused_empty_and_missing_Write_chunks_for_nothing_returned) {
  PROVES("R8166-4.3.2.2-f");
  for (int form = 0; form < 3; ++form) {
    Reading reading;
    reading.returned({0, 0, 0});
    if (form == 1) reading.header.write_list[0].segments.clear();
    if (form == 2) reading.header.write_list.clear();
    reading.receive_reply();
    ASSERT_EQ(reading.client.sink.reply_arrivals.size(), 1u) << form;
    EXPECT_EQ(reading.client.sink.reply_arrivals[0].written, (InlineVector<std::uint32_t, 2>{0}));
  }
}

TEST(Requester, takes_a_Long_Reply_from_its_Reply_chunk_together_with_Write_chunks) {
  Reading reading;
  reading.header.proc = RDMA_NOMSG;
  reading.returned({1000, 1000, 1000}, 1500);
  reading.receive_reply();
  ASSERT_EQ(reading.client.sink.reply_arrivals.size(), 1u);
  const ReplyArrival& arrival = reading.client.sink.reply_arrivals[0];
  EXPECT_TRUE(arrival.long_reply);
  EXPECT_EQ(arrival.reply_chunk_length, 1500u);
  EXPECT_EQ(arrival.written, (InlineVector<std::uint32_t, 2>{3000}));
}

TEST(Requester, accepts_a_Short_Reply_with_the_Reply_chunk_unused_or_absent) {
  for (bool absent : {false, true}) {
    Reading reading;
    reading.returned({0, 0, 0});
    if (absent) reading.header.reply_chunk.reset();
    reading.receive_reply();
    EXPECT_EQ(reading.client.sink.replies, (Xids{9}));
  }
}

TEST(Requester, drops_a_Reply_whose_chunks_are_not_those_of_its_Call_and_waits_on) {
  PROVES("R8166-4.5-d", "R8166-4.2.4-e");
  Reading reading;
  reading.returned({8, 0, 0});
  const Header good = reading.header;
  const auto broken = [&](auto change) {
    reading.header = good;
    change(reading.header);
    reading.expect_drop(Reason::RdmaReplyChunksDiffer);
  };
  broken([](Header& header) { header.write_list[0].segments[1].handle ^= 1; });
  broken([](Header& header) { header.write_list[0].segments[1].offset ^= 1; });
  broken([](Header& header) { header.write_list[0].segments[0].length = 1001; });
  broken([](Header& header) { header.write_list[0].segments[2].length = 8; });
  broken([](Header& header) { header.write_list[0].segments.pop_back(); });
  broken([](Header& header) { header.write_list[0].segments.push_back({1, 0, 1}); });
  broken([](Header& header) { header.write_list.push_back({}); });
  broken([](Header& header) { header.reply_chunk->segments[0].handle ^= 1; });
  broken([](Header& header) { header.reply_chunk->segments[0].length = 3001; });
  reading.header = good;
  reading.receive_reply();
  EXPECT_EQ(reading.client.sink.replies, (Xids{9}));
}

TEST(Requester, drops_a_Reply_chunk_that_it_never_offered) {
  TestCall call(9);
  Endpoint client(client_settings());
  client.core.on_call(call);
  Header header = header_of(9, 4);
  header.reply_chunk = WriteChunk{};
  client.receive(with_stream(header, rpc_stream(9, REPLY, 40)));
  header.reply_chunk->segments.push_back({1, 0, 0});
  client.receive(with_stream(header, rpc_stream(9, REPLY, 40)));
  EXPECT_EQ(client.sink.drops,
            (Reasons{Reason::RdmaReplyChunksDiffer, Reason::RdmaReplyChunksDiffer}));
}

TEST(Requester, drops_a_Reply_whose_form_and_Reply_chunk_contradict_each_other) {
  Reading reading;
  reading.returned({8, 0, 0}, 100);
  reading.expect_drop(Reason::RdmaReplyFormBad);
  reading.header.proc = RDMA_NOMSG;
  reading.returned({8, 0, 0}, 0);
  reading.expect_drop(Reason::RdmaReplyFormBad);
}

TEST(Requester, drops_a_Reply_with_another_XID_inside) {
  TestCall call(9);
  Endpoint client(client_settings());
  client.core.on_call(call);
  client.receive(with_stream(header_of(9, 4), rpc_stream(8, REPLY, 40)));
  EXPECT_EQ(client.sink.drops, (Reasons{Reason::RdmaXidMismatch}));
  EXPECT_TRUE(client.sink.replies.empty());
}

TEST(Requester, ends_a_Call_when_the_peer_refuses_it) {
  PROVES("R8166-4.5-h", "R8166-7-b");
  TestCall first(1), second(2), third(3);
  Endpoint client(client_settings());
  client.core.on_call(first);
  client.core.on_call(second);
  client.receive(error_chunk(1));
  EXPECT_EQ(client.sink.failed, (Xids{1}));
  EXPECT_EQ(client.sink.failures[0].reason, Reason::RdmaPeerRefusedChunks);
  EXPECT_EQ(client.sink.calls, (Xids{1, 2})) << "not sent again, and its credit is free";
  client.receive(copy(encode_error({2, 7, 8, ERR_VERS, 2, 3}).bytes()));
  ASSERT_EQ(client.sink.failures.size(), 2u);
  EXPECT_EQ(client.sink.failures[1].reason, Reason::RdmaPeerRefusedVersion);
  EXPECT_EQ(client.sink.failures[1].lowest_version, 2u);
  EXPECT_EQ(client.sink.failures[1].highest_version, 3u);
  // As a peer sends it that does not know version 1: the version is that of the Call.
  client.core.on_call(third);
  client.receive(copy(encode_error({3, 1, 8, ERR_VERS, 2, 3}).bytes()));
  ASSERT_EQ(client.sink.failures.size(), 3u);
  EXPECT_EQ(client.sink.failures[2].reason, Reason::RdmaPeerRefusedVersion);
  EXPECT_EQ(client.sink.failures[2].lowest_version, 2u);
  EXPECT_TRUE(client.sink.closes.empty());
}

TEST(Requester, keeps_credit_and_XID_of_a_cancelled_Call_until_its_Reply) {
  TestCall first(1), second(2), third(3);
  Endpoint client(client_settings());
  client.core.on_call(first);
  client.core.on_call(second);
  client.core.on_call(third);
  client.core.on_cancel(first);
  EXPECT_EQ(client.sink.calls, (Xids{1})) << "its credit is not free yet";
  EXPECT_TRUE(client.core.requester().awaits(1));
  client.core.on_cancel(second);
  client.receive(short_reply(1, 1));
  EXPECT_EQ(client.sink.calls, (Xids{1, 3})) << "the second was never sent";
  EXPECT_EQ(client.sink.drops, (Reasons{Reason::RdmaReplyCancelled}));
  EXPECT_TRUE(client.sink.replies.empty());
  EXPECT_TRUE(client.sink.failed.empty());
  client.core.on_cancel(third);
  client.receive(error_chunk(3));
  EXPECT_TRUE(client.sink.failed.empty());
  EXPECT_EQ(client.core.requester().in_flight(), 0u);
}

TEST(Requester, fails_all_Calls_when_the_connection_is_lost_and_starts_anew_with_one_credit) {
  std::deque<TestCall> calls;
  TestCall large(7, 1500);
  {
    Endpoint client(client_settings());
    for (std::uint32_t xid = 1; xid <= 6; ++xid) client.core.on_call(calls.emplace_back(xid));
    client.receive(short_reply(1, 3));
    client.core.on_cancel(calls[1]);
    client.core.on_disconnect(Reason::TimedOut);
    EXPECT_EQ(client.sink.failed.size(), 4u);
    for (const CallFailure& failure : client.sink.failures)
      EXPECT_EQ(failure.reason, Reason::TimedOut);
    TestCall late(9);
    client.core.on_call(late);
    EXPECT_EQ(client.sink.failed.back(), 9u);
  }
  Settings settings = client_settings();
  settings.thresholds.send = 2048;
  Endpoint again(settings);
  again.core.on_call(large);
  again.core.on_call(calls[2]);
  EXPECT_EQ(again.sink.calls, (Xids{7}));
  EXPECT_EQ(large.plan().form, Form::Inline) << "the new threshold holds";
}

TEST(Requester, may_be_called_from_inside_the_end_of_a_Call) {
  std::deque<TestCall> calls;
  Endpoint client(client_settings());
  std::uint32_t next = 2;
  client.sink.on_end = [&] {
    if (next <= 200) client.core.on_call(calls.emplace_back(next++));
  };
  client.core.on_call(calls.emplace_back(1));
  for (std::uint32_t xid = 1; xid <= 200; ++xid) client.receive(short_reply(xid, 8));
  EXPECT_EQ(client.sink.replies.size(), 200u);
  EXPECT_EQ(client.core.requester().in_flight(), 0u);
}

TEST(Requester, hands_an_invalidated_handle_of_the_Call_to_its_owner) {
  PROVES("R8797-4.1-a");
  for (bool invalidate : {false, true}) {
    TestCall call(1, 80, 5000);
    Settings settings = client_settings();
    settings.thresholds.may_be_invalidated = true;
    Endpoint client(settings);
    client.core.on_call(call);
    Header header = sent_header(client);
    const std::uint32_t handle = header.reply_chunk->segments[0].handle;
    header.reply_chunk->segments[0].length = 0;
    client.receive(with_stream(header, rpc_stream(1, REPLY, 40)),
                   invalidate ? std::optional(handle) : std::nullopt);
    ASSERT_EQ(client.sink.reply_arrivals.size(), 1u);
    EXPECT_EQ(client.sink.reply_arrivals[0].invalidated.has_value(), invalidate);
  }
}

TEST(Requester, closes_when_the_peer_invalidates_memory_of_another_Call_or_without_leave) {
  for (bool leave : {false, true}) {
    TestCall warm(9), first(1, 80, 5000), second(2, 80, 5000);
    Settings settings = client_settings();
    settings.thresholds.may_be_invalidated = leave;
    Endpoint client(settings);
    client.core.on_call(warm);
    client.receive(short_reply(9, 8));
    client.core.on_call(first);
    client.core.on_call(second);
    Header header = sent_header(client, 1);
    const std::uint32_t other = sent_header(client, 2).reply_chunk->segments[0].handle;
    const std::uint32_t own = header.reply_chunk->segments[0].handle;
    header.reply_chunk->segments[0].length = 0;
    client.receive(with_stream(header, rpc_stream(1, REPLY, 40)), leave ? other : own);
    EXPECT_EQ(client.sink.closes, (Reasons{Reason::RdmaWrongHandleInvalidated}));
    EXPECT_EQ(client.sink.replies, (Xids{9}));
  }
}

}  // namespace
}  // namespace stag::rpcrdma
