#include "rpcrdma/responder.h"

#include <gtest/gtest.h>

#include "rpcrdma/recorder_test.h"
#include "testing/manual_loop.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using namespace testing;
using Reasons = std::vector<Reason>;

ReplyShape reply_with(std::uint32_t length, std::uint32_t position, std::uint32_t data) {
  ReplyShape shape = plain_reply(length);
  Item item;
  item.position = position;
  item.length = data;
  shape.items.push_back(item);
  return shape;
}

Message long_call(std::uint32_t xid, const Segments& segments) {
  Header header = header_of(xid, 8, RDMA_NOMSG);
  header.read_list.push_back({0, segments});
  return with_stream(header, {});
}

void expect_error(const Message& error, std::uint32_t xid, std::uint32_t code) {
  ASSERT_EQ(error.size(), code == ERR_VERS ? 28u : 20u);
  EXPECT_EQ(word(error, 0), xid);
  EXPECT_GE(word(error, 2), 1u);
  if (code == ERR_CHUNK) {
    EXPECT_EQ(word(error, 1), 1u) << "the version of the Call";
  }
  EXPECT_EQ(word(error, 3), RDMA_ERROR);
  EXPECT_EQ(word(error, 4), code);
}

// Answers the latest Call with 40 bytes and lets the Reply be sent.
void answer(Endpoint& server) {
  IncomingCall& call = server.sink.delivered.back().call;
  server.core.on_reply(call, plain_reply(40));
  server.core.on_sent(call);
}

// Each with a Reply that has left only when all have come.
void serve_at_a_time(Endpoint& server, std::uint32_t first_xid, std::uint32_t calls) {
  const std::size_t first = server.sink.delivered.size();
  for (std::uint32_t i = 0; i < calls; ++i) server.receive(short_call(first_xid + i));
  for (std::uint32_t i = 0; i < calls; ++i) {
    IncomingCall& call = server.sink.delivered[first + i].call;
    server.core.on_reply(call, plain_reply(40));
    server.core.on_sent(call);
  }
}

TEST(Responder, keeps_the_records_of_a_full_load_no_longer_than_the_load) {
  Endpoint server(server_settings(64));
  serve_at_a_time(server, 100, 64);
  EXPECT_EQ(server.core.responder().records(), 64u) << "the next load needs them";
  server.receive(short_call(1));
  server.core.on_quiet();
  EXPECT_EQ(server.core.responder().records(), 64u) << "a Call is in progress";
  answer(server);
  server.core.on_quiet();
  EXPECT_EQ(server.core.responder().records(), kKeptRecords);
  serve_at_a_time(server, 200, 64);
  EXPECT_EQ(server.core.responder().records(), 64u);
}

TEST(Responder, delivers_a_Short_Call_at_once_and_answers_it_with_one_Send) {
  PROVES("R8166-3.5.1-a", "R8166-3.2-a", "R8166-4.2.1-a");
  Endpoint server(server_settings());
  const Message stream = rpc_stream(5, CALL, 80);
  server.receive(with_stream(header_of(5, 8), stream));
  EXPECT_EQ(server.sink.actions(), "deliver");
  EXPECT_EQ(server.sink.delivered[0].payload, stream);
  EXPECT_EQ(server.sink.delivered[0].arrival.inline_reply_max, 1024u - 28);
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(100));
  EXPECT_EQ(server.sink.actions(), "send");
  const Message& header = server.sink.sent[0].header;
  EXPECT_EQ(header.size(), 28u);
  EXPECT_EQ(word(header, 0), 5u);
  EXPECT_EQ(word(header, 1), 1u);
  EXPECT_EQ(word(header, 3), RDMA_MSG);
  EXPECT_EQ(server.sink.sent[0].plan.stream_length, 100u);
}

TEST(Responder, answers_each_Call_under_its_own_XID_in_any_order) {
  PROVES("R8166-2.2.2-b");
  Endpoint server(server_settings());
  for (std::uint32_t xid = 11; xid <= 14; ++xid) server.receive(short_call(xid));
  for (const std::size_t index : {2u, 0u, 3u, 1u}) {
    server.core.on_reply(server.sink.delivered[index].call, plain_reply(40));
    EXPECT_EQ(server.sink.sent.back().xid, 11 + index);
  }
}

TEST(Responder, grants_its_credits_in_every_Reply_and_error_whatever_was_requested) {
  PROVES("R8166-4.2.3-b");
  Endpoint server(server_settings(12));
  for (std::uint32_t requested : {0u, 1u, 500u}) {
    server.receive(short_call(requested + 1, requested));
    answer(server);
    EXPECT_EQ(word(server.sink.sent.back().header, 2), 12u);
  }
  Message broken = short_call(9);
  set_word(broken, 3, 77);
  server.receive(broken);
  EXPECT_EQ(word(server.sink.errors.back(), 2), 12u);
}

TEST(Responder, has_Receives_for_its_grant_before_it_grants) {
  PROVES("R8166-3.3.1-h", "R8167-4.3.2-a", "R8167-6-c");
  Endpoint server(server_settings(12));
  EXPECT_GE(server.sink.receives, 12u);
  const std::uint32_t before = server.sink.receives;
  server.core.serve_calls(20);
  EXPECT_EQ(server.sink.receives, before + 8);
  server.core.serve_calls(5);
  EXPECT_EQ(server.core.responder().credits(), 20u);
  server.receive(short_call(1));
  EXPECT_EQ(server.sink.receives, before + 9) << "the Receive is replaced";
  answer(server);
  EXPECT_EQ(word(server.sink.sent.back().header, 2), 20u);
}

TEST(Responder, sends_nothing_that_was_not_asked_for) {
  PROVES("R8166-3.3.1-j", "R8167-2-a");
  Endpoint server(server_settings());
  server.receive(short_call(1));
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(40));
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(40));
  server.core.on_sent(server.sink.delivered[0].call);
  server.core.on_budget();
  EXPECT_EQ(server.sink.actions(), "deliver send");
  // A Reply to a Call that was answered already is not sent.
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(40));
  EXPECT_EQ(server.sink.actions(), "");
}

TEST(Responder, reads_the_segments_of_a_chunk_in_list_order_into_one_item) {
  PROVES("R8166-3.4.5-e", "R8166-3.4.5-f", "R8166-3.4.5-g");
  Endpoint server(server_settings());
  server.receive(call_with_read(5, 112, {segment(3, 3), segment(1, 5), segment(2, 2)}));
  EXPECT_EQ(server.sink.actions(), "hold start_reads read read read");
  ASSERT_EQ(server.sink.reads.size(), 3u);
  std::uint32_t offset = 0;
  for (const ReadAction& read : server.sink.reads) {
    EXPECT_EQ(read.item, 0u);
    EXPECT_EQ(read.offset, offset);
    offset += read.from.length;
  }
  EXPECT_EQ(server.sink.reads[0].from, segment(3, 3));
  EXPECT_EQ(server.sink.reads[1].from, segment(1, 5));
  EXPECT_EQ(server.sink.reads[2].from, segment(2, 2));
  for (const ReadAction& read : server.sink.reads) {
    EXPECT_TRUE(server.sink.delivered.empty());
    server.core.on_read_done(read.call, Reason::None);
  }
  ASSERT_EQ(server.sink.delivered.size(), 1u);
  EXPECT_TRUE(server.sink.delivered[0].arrival.deferred);
  EXPECT_EQ(server.sink.held[5], rpc_stream(5, CALL, 160));
  ASSERT_EQ(server.sink.delivered[0].items.size(), 1u);
  EXPECT_EQ(server.sink.delivered[0].items[0].position, 112u);
  EXPECT_EQ(server.sink.delivered[0].items[0].length, 10u);
}

TEST(Responder, issues_no_Read_for_an_empty_segment) {
  PROVES("R8166-3.4.3-a");
  Endpoint server(server_settings());
  server.receive(call_with_read(5, 112, {segment(1, 4), segment(2, 0), segment(3, 4)}));
  ASSERT_EQ(server.sink.reads.size(), 2u);
  EXPECT_EQ(server.sink.reads[1].offset, 4u);
  server.receive(call_with_read(6, 112, {segment(1, 0)}));
  EXPECT_EQ(server.sink.reads.size(), 2u);
  EXPECT_EQ(server.sink.delivered.size(), 1u) << "an item without bytes needs no Read";
}

TEST(Responder, takes_a_Long_Call_from_its_Position_Zero_chunk_however_small) {
  PROVES("R8166-3.5.3-f", "R8166-4-b");
  Endpoint server(server_settings());
  server.sink.long_stream = rpc_stream(5, CALL, 40);
  server.receive(long_call(5, {segment(1, 24), segment(2, 16)}));
  EXPECT_EQ(server.sink.actions(), "hold start_reads read read");
  for (const ReadAction& read : server.sink.reads)
    server.core.on_read_done(read.call, Reason::None);
  ASSERT_EQ(server.sink.delivered.size(), 1u);
  EXPECT_TRUE(server.sink.delivered[0].arrival.long_call);
  EXPECT_EQ(server.sink.delivered[0].items[0].length, 40u);
  answer(server);
  EXPECT_EQ(server.sink.sent[0].xid, 5u);
}

TEST(Responder, sorts_reduced_items_of_a_Long_Call_behind_its_stream) {
  PROVES("R8166-3.5.3-k");
  Endpoint server(server_settings());
  Header header = header_of(5, 8, RDMA_NOMSG);
  header.read_list = {{600, {segment(1, 100)}}, {0, {segment(2, 700)}}, {200, {segment(3, 5)}}};
  server.sink.long_stream = rpc_stream(5, CALL, 700);
  server.receive(with_stream(header, {}));
  ASSERT_EQ(server.sink.reads.size(), 3u);
  EXPECT_EQ(server.sink.reads[0].from.handle, 2u);
  EXPECT_EQ(server.sink.reads[1].from.handle, 3u);
  EXPECT_EQ(server.sink.reads[2].from.handle, 1u);
  for (const ReadAction& read : server.sink.reads)
    server.core.on_read_done(read.call, Reason::None);
  ASSERT_EQ(server.sink.delivered.size(), 1u);
  EXPECT_TRUE(server.sink.errors.empty());
  EXPECT_EQ(server.sink.delivered[0].items[1].position, 200u);
  EXPECT_EQ(server.sink.delivered[0].items[2].position, 600u);
  // The last place is the end of the unreduced stream: 700 inline bytes, 8 and 100 of items.
  header.xid = 6;
  server.sink.long_stream = rpc_stream(6, CALL, 700);
  for (const std::uint32_t position : {708u, 712u}) {
    header.read_list[0].position = position;
    server.receive(with_stream(header, {}));
    EXPECT_EQ(server.sink.errors.size(), position == 712 ? 1u : 0u) << position;
    header.xid = 7;
  }
}

TEST(Responder, accepts_a_chunk_with_its_pad_and_the_next_item_at_the_same_Position) {
  Endpoint server(server_settings());
  for (std::uint32_t length : {5u, 8u}) {
    Header header = header_of(length, 8);
    header.read_list = {{112, {segment(1, length)}}, {124, {segment(2, 100)}}};
    server.receive(with_stream(header, rpc_stream(length, CALL, 116)));
    EXPECT_EQ(server.sink.reads.back().call.get().xid(), length);
  }
  EXPECT_TRUE(server.sink.errors.empty());
}

TEST(Responder, accepts_a_pad_as_a_segment_of_its_own_or_at_the_end_of_the_last) {
  PROVES("R8166-3.4.5.2-d");
  Endpoint server(server_settings());
  server.receive(call_with_read(1, 112, {segment(1, 5), segment(2, 3)}));
  server.receive(call_with_read(2, 112, {segment(3, 8)}));
  for (const ReadAction& read : std::vector(server.sink.reads))
    server.core.on_read_done(read.call, Reason::None);
  ASSERT_EQ(server.sink.delivered.size(), 2u);
  EXPECT_EQ(server.sink.delivered[0].items[0].length, 8u);
  EXPECT_EQ(server.sink.delivered[1].items[0].length, 8u);
}

TEST(Responder, sends_no_Reply_while_Reads_are_under_way) {
  PROVES("R8166-3.4.5.1-b");
  Endpoint server(server_settings());
  server.receive(call_with_read(1, 112, {segment(1, 8), segment(2, 8)}));
  IncomingCall& call = server.sink.reads[0].call;
  server.core.on_read_done(call, Reason::None);
  server.core.on_reply(call, plain_reply(40));
  EXPECT_TRUE(server.sink.sent.empty());
  server.core.on_read_done(call, Reason::None);
  server.core.on_reply(call, plain_reply(40));
  EXPECT_EQ(server.sink.sent.size(), 1u);
  EXPECT_EQ(server.sink.reads.size(), 2u);
}

TEST(Responder, refuses_the_same_Call_again_on_a_new_connection_while_its_room_is_too_small) {
  PROVES("R8166-4.5.3-c");
  for (int connection = 0; connection < 2; ++connection) {
    Endpoint server(server_settings());
    Header header = header_of(5, 8);
    header.reply_chunk = WriteChunk{{segment(1, 1000)}};
    server.receive(with_stream(header, rpc_stream(5, CALL, 80)));
    server.core.on_reply(server.sink.delivered[0].call, plain_reply(1500));
    expect_error(server.sink.errors.back(), 5, ERR_CHUNK);
    EXPECT_EQ(server.sink.error_reasons[0], Reason::RdmaReplyChunkTooSmall);
    EXPECT_TRUE(server.sink.closes.empty());
    EXPECT_TRUE(server.sink.writes.empty());
  }
}

TEST(Responder, refuses_a_Call_whose_arguments_find_no_memory_and_goes_on) {
  Endpoint server(server_settings());
  server.sink.has_memory = false;
  server.receive(call_with_read(1, 112, {segment(1, 64)}));
  ASSERT_EQ(server.sink.errors.size(), 1u);
  EXPECT_EQ(word(server.sink.errors[0], 4), ERR_CHUNK);
  EXPECT_TRUE(server.sink.reads.empty());
  server.sink.has_memory = true;
  server.receive(call_with_read(1, 112, {segment(1, 64)}));
  EXPECT_EQ(server.sink.reads.size(), 1u);
  EXPECT_TRUE(server.sink.closes.empty());
}

TEST(Responder, refuses_Positions_that_do_not_fit_the_stream) {
  PROVES("R8166-4.5-c", "R8166-4.5-a");
  Endpoint server(server_settings());
  const auto refused = [&](const ReadList& list) {
    const std::size_t errors = server.sink.errors.size();
    Header header = header_of(5, 8);
    header.read_list = list;
    server.receive(with_stream(header, rpc_stream(5, CALL, 160)));
    ASSERT_EQ(server.sink.errors.size(), errors + 1);
    expect_error(server.sink.errors.back(), 5, ERR_CHUNK);
    EXPECT_EQ(server.sink.error_reasons.back(), Reason::InvalidReadPosition);
  };
  refused({{164, {segment(1, 8)}}});
  refused({{112, {segment(1, 8)}}, {116, {segment(2, 8)}}});
  refused({{112, {segment(1, 8)}}, {172, {segment(2, 8)}}});
  refused({{0xfffffffc, {segment(1, 8)}}});
  EXPECT_TRUE(server.sink.delivered.empty());
  EXPECT_TRUE(server.sink.reads.empty());
  server.receive(call_with_read(6, 160, {segment(1, 8)}));
  EXPECT_EQ(server.sink.reads.size(), 1u) << "the end of the stream is a place";
}

TEST(Responder, returns_an_empty_Read_list_whatever_the_Call_had) {
  PROVES("R8166-4.3.1-c");
  Endpoint server(server_settings());
  server.receive(call_with_read(5, 112, {segment(3, 8)}));
  server.core.on_read_done(server.sink.reads[0].call, Reason::None);
  answer(server);
  EXPECT_EQ(word(server.sink.sent[0].header, 4), 0u);
  EXPECT_EQ(server.sink.sent[0].header.size(), 28u);
}

TEST(Responder, lays_results_out_over_the_segments_of_their_chunk) {
  Endpoint server(server_settings());
  server.receive(call_with_write(5, {segment(1, 64), segment(2, 64)}));
  server.core.on_reply(server.sink.delivered[0].call, reply_with(200, 80, 100));
  EXPECT_EQ(server.sink.actions(), "deliver write write send");
  EXPECT_EQ(server.sink.writes[0], (Placement{0, 0, segment(1, 64)}));
  EXPECT_EQ(server.sink.writes[1], (Placement{0, 64, segment(2, 36)}));
  const auto header = decode_header(server.sink.sent[0].header);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->header.write_list[0].segments[1].length, 36u);
}

TEST(Responder, sends_a_Long_Reply_as_a_header_alone) {
  Endpoint server(server_settings());
  Header header = header_of(5, 8);
  header.reply_chunk = WriteChunk{{segment(1, 4096)}};
  server.receive(with_stream(header, rpc_stream(5, CALL, 80)));
  EXPECT_EQ(server.sink.delivered[0].arrival.reply_chunk_max, 4096u);
  EXPECT_EQ(server.sink.delivered[0].arrival.inline_reply_max, 1024u - 48);
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(3000));
  EXPECT_EQ(server.sink.actions(), "deliver write send");
  EXPECT_EQ(word(server.sink.sent[0].header, 3), RDMA_NOMSG);
  EXPECT_EQ(server.sink.sent[0].plan.form, Form::Long);
}

TEST(Responder, returns_the_Reply_chunk_of_the_Call_whether_it_is_used_or_not) {
  PROVES("R8166-4.3.3-d");
  Endpoint server(server_settings());
  Header call = header_of(5, 8);
  call.reply_chunk = WriteChunk{{segment(1, 1024), segment(2, 1024)}};
  call.write_list.push_back({{segment(3, 64)}});
  for (const std::uint32_t length : {100u, 1500u}) {
    call.xid = length;
    server.receive(with_stream(call, rpc_stream(length, CALL, 80)));
    server.core.on_reply(server.sink.delivered.back().call, plain_reply(length));
    const auto reply = decode_header(server.sink.sent.back().header);
    ASSERT_TRUE(reply.ok());
    ASSERT_TRUE(reply->header.reply_chunk.has_value()) << length;
    Segments expected = call.reply_chunk->segments;
    expected[0].length = length > 1000 ? 1024 : 0;
    expected[1].length = length > 1000 ? length - 1024 : 0;
    EXPECT_EQ(reply->header.reply_chunk->segments, expected);
  }
}

TEST(Responder, returns_an_empty_Write_chunk_empty_and_at_its_place) {
  PROVES("R8166-4.3.2.3-d", "R8166-3.4.6-e");
  Endpoint server(server_settings());
  Header call = header_of(5, 8);
  call.write_list = {{{segment(1, 8), segment(4, 64)}}, {}, {{segment(2, 64)}}};
  server.receive(with_stream(call, rpc_stream(5, CALL, 80)));
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(40));
  const Message& reply = server.sink.sent[0].header;
  ASSERT_EQ(reply.size(), 28u + 40 + 8 + 24);
  EXPECT_EQ(word(reply, 15), 1u);
  EXPECT_EQ(word(reply, 16), 0u);
  const auto header = decode_header(reply);
  ASSERT_TRUE(header.ok());
  ASSERT_EQ(header->header.write_list.size(), 3u);
  Segments first{segment(1, 0), segment(4, 0)};
  EXPECT_EQ(header->header.write_list[0].segments, first) << "the segments of the Call, in order";
  EXPECT_TRUE(header->header.write_list[1].segments.empty());
  EXPECT_EQ(header->header.write_list[2].segments[0].handle, 2u);
}

TEST(Responder, answers_ERR_CHUNK_before_any_Write_when_the_Reply_does_not_fit) {
  Endpoint server(server_settings());
  server.receive(call_with_write(5, {segment(1, 64), segment(2, 35)}));
  server.core.on_reply(server.sink.delivered[0].call, reply_with(200, 80, 100));
  EXPECT_EQ(server.sink.actions(), "deliver error forget");
  expect_error(server.sink.errors[0], 5, ERR_CHUNK);
  EXPECT_EQ(server.sink.error_reasons[0], Reason::RdmaWriteChunkTooSmall);
  server.receive(short_call(6));
  server.core.on_reply(server.sink.delivered[1].call, plain_reply(5000));
  EXPECT_EQ(server.sink.error_reasons[1], Reason::RdmaReplyTooLarge);
  EXPECT_EQ(server.core.responder().in_service(), 0u);
  EXPECT_TRUE(server.sink.closes.empty());
}

TEST(Responder, answers_ERR_VERS_and_keeps_the_connection) {
  PROVES("R8166-4.5.1-a", "R8166-4.5.1-b", "R8166-4.5-f");
  Endpoint server(server_settings());
  for (std::uint32_t version : {0u, 2u, 7u, 0xffffffffu}) {
    Message message = short_call(5);
    set_word(message, 1, version);
    set_word(message, 4, 0xdead);  // what follows may be anything
    server.receive(message);
    const Message& error = server.sink.errors.back();
    expect_error(error, 5, ERR_VERS);
    EXPECT_EQ(word(error, 1), version);
    EXPECT_EQ(word(error, 5), 1u);
    EXPECT_EQ(word(error, 6), 1u);
  }
  EXPECT_EQ(server.sink.errors.size(), 4u);
  EXPECT_TRUE(server.sink.closes.empty());
  server.receive(short_call(6));
  EXPECT_EQ(server.sink.delivered.size(), 1u);
}

TEST(Responder, answers_ERR_CHUNK_to_a_header_it_cannot_parse) {
  PROVES("R8166-4.5.2-a", "R8166-4.5-e", "R8166-4.5-f", "R8166-4.5-g");
  Endpoint server(server_settings());
  const Message message = golden("long_call");
  for (std::size_t length = 28; length < message.size(); ++length) {
    server.receive({message.begin(), message.begin() + static_cast<std::ptrdiff_t>(length)});
    ASSERT_EQ(server.sink.errors.size(), length - 27);
    expect_error(server.sink.errors.back(), 0x11223344, ERR_CHUNK);
    EXPECT_EQ(word(server.sink.errors.back(), 1), 1u);
  }
  EXPECT_TRUE(server.sink.delivered.empty());
  EXPECT_TRUE(server.sink.reads.empty());
}

TEST(Responder, answers_ERR_CHUNK_to_unknown_and_obsolete_procedures) {
  PROVES("R8166-4.5.2-b", "R8166-4.6.1-b");
  Endpoint server(server_settings());
  for (std::uint32_t proc : {2u, 5u, 0x80000000u}) {
    Message message = short_call(5);
    set_word(message, 3, proc);
    server.receive(message);
    expect_error(server.sink.errors.back(), 5, ERR_CHUNK);
  }
  EXPECT_EQ(server.sink.error_reasons, (Reasons{Reason::RdmaMsgp, Reason::RdmaProcedureUnknown,
                                                Reason::RdmaProcedureUnknown}));
}

TEST(Responder, answers_ERR_CHUNK_to_RDMA_NOMSG_without_a_stream) {
  PROVES("R8166-4.5.2-c", "R8166-4.2.4-c", "R8166-4.2.4-d");
  Endpoint server(server_settings());
  server.receive(with_stream(header_of(5, 8, RDMA_NOMSG), {}));
  expect_error(server.sink.errors.back(), 5, ERR_CHUNK);
  // Without a Call of ours under way it cannot be a Long Reply either.
  Header header = header_of(6, 8, RDMA_NOMSG);
  header.reply_chunk = WriteChunk{{segment(1, 4096)}};
  server.receive(with_stream(header, {}));
  expect_error(server.sink.errors.back(), 6, ERR_CHUNK);
  EXPECT_EQ(server.sink.error_reasons,
            (Reasons{Reason::RdmaStreamMissing, Reason::RdmaStreamMissing}));
}

TEST(Responder, answers_ERR_CHUNK_when_the_XIDs_differ_inline_and_in_a_Long_Call) {
  PROVES("R8166-4.5.2-d", "R8166-4.5-f");
  Endpoint server(server_settings());
  server.receive(with_stream(header_of(5, 8), rpc_stream(4, CALL, 80)));
  expect_error(server.sink.errors.back(), 5, ERR_CHUNK);
  server.sink.long_stream = rpc_stream(4, CALL, 80);
  server.receive(long_call(5, {segment(1, 80)}));
  server.core.on_read_done(server.sink.reads[0].call, Reason::None);
  ASSERT_EQ(server.sink.errors.size(), 2u);
  expect_error(server.sink.errors.back(), 5, ERR_CHUNK);
  EXPECT_EQ(server.sink.actions(), "error hold start_reads read error forget");
  EXPECT_EQ(server.sink.error_reasons, (Reasons{Reason::RdmaXidMismatch, Reason::RdmaXidMismatch}));
}

TEST(Responder, refuses_a_Long_Call_that_is_no_Call_or_too_short_to_tell) {
  Endpoint server(server_settings());
  server.sink.long_stream = rpc_stream(5, REPLY, 80);
  server.receive(long_call(5, {segment(1, 80)}));
  server.core.on_read_done(server.sink.reads[0].call, Reason::None);
  server.receive(long_call(6, {segment(1, 4)}));
  EXPECT_EQ(server.sink.error_reasons,
            (Reasons{Reason::RdmaDirectionBad, Reason::RdmaPayloadTooShort}));
}

TEST(Responder, refuses_a_Call_whose_chunks_do_not_suit_its_arguments) {
  PROVES("R8166-6.1-c", "R8166-6.1-d");
  Endpoint server(server_settings());
  server.receive(call_with_read(5, 112, {segment(3, 8)}));
  server.core.on_read_done(server.sink.reads[0].call, Reason::None);
  server.core.on_refusal(server.sink.delivered[0].call, Reason::InvalidReadPosition);
  expect_error(server.sink.errors[0], 5, ERR_CHUNK);
  EXPECT_EQ(server.sink.forgotten, (Reasons{Reason::InvalidReadPosition}));
  EXPECT_EQ(server.core.responder().in_service(), 0u);
}

TEST(Responder, drops_what_it_must_not_answer_and_replaces_every_Receive) {
  PROVES("R8166-4.5-j", "R8166-4.2.4-f", "R8166-4.6.2-b", "R8166-4.5-i");
  Endpoint server(server_settings(4));
  Message done = short_call(5);
  set_word(done, 3, RDMA_DONE);
  Message odd_error = error_chunk(5);
  set_word(odd_error, 4, 99);
  const std::uint32_t before = server.sink.receives;
  for (int i = 0; i < 100; ++i) {
    server.receive(Message(20, std::byte{0}));
    server.receive(done);
    server.receive({done.begin(), done.begin() + 16});
    server.receive(error_chunk(5));
    server.receive(odd_error);
  }
  EXPECT_EQ(server.sink.receives, before + 500);
  EXPECT_EQ(server.sink.drops.size(), 500u);
  EXPECT_EQ(Reasons(server.sink.drops.begin(), server.sink.drops.begin() + 5),
            (Reasons{Reason::RdmaMessageTooShort, Reason::RdmaDone, Reason::RdmaDone,
                     Reason::RdmaErrorUnmatched, Reason::RdmaErrorMalformed}));
  EXPECT_TRUE(server.sink.errors.empty());
  EXPECT_TRUE(server.sink.closes.empty());
  server.receive(short_call(6));
  answer(server);
  EXPECT_EQ(server.sink.sent.size(), 1u);
}

TEST(Responder, drops_Calls_cut_below_28_bytes_without_a_word) {
  PROVES("R8166-4.5-b");
  Endpoint server(server_settings(4));
  const Message call = short_call(5);
  for (std::size_t length = 0; length < 28; ++length)
    server.receive({call.begin(), call.begin() + static_cast<std::ptrdiff_t>(length)});
  EXPECT_EQ(server.sink.drops, Reasons(28, Reason::RdmaMessageTooShort));
  EXPECT_TRUE(server.sink.errors.empty());
  EXPECT_TRUE(server.sink.closes.empty());
  server.receive(call);
  EXPECT_EQ(server.sink.delivered.size(), 1u);
}

TEST(Responder, drops_a_second_Call_with_the_XID_of_one_in_progress) {
  Endpoint server(server_settings());
  server.receive(short_call(5));
  server.receive(short_call(5));
  EXPECT_EQ(server.sink.drops, (Reasons{Reason::RdmaCallXidDuplicate}));
  answer(server);
  server.receive(short_call(5));
  EXPECT_EQ(server.sink.delivered.size(), 2u) << "its XID is free after the Reply";
}

TEST(Responder, closes_when_more_Calls_come_than_it_has_Receives_for) {
  Endpoint server(server_settings(3));
  for (std::uint32_t xid = 1; xid <= 3; ++xid) server.receive(short_call(xid));
  EXPECT_TRUE(server.sink.closes.empty());
  EXPECT_EQ(server.core.responder().overruns(), 2u) << "one is allowed before the first Reply";
  server.receive(short_call(4));
  EXPECT_EQ(server.sink.closes, (Reasons{Reason::RdmaCreditsExceeded}));
  EXPECT_EQ(server.sink.delivered.size(), 3u);
  server.receive(short_call(5));
  EXPECT_EQ(server.sink.closes.size(), 1u);
}

TEST(Responder, gives_the_credit_back_when_there_will_be_no_Reply) {
  Endpoint server(server_settings(1));
  for (std::uint32_t xid = 1; xid <= 3; ++xid) {
    server.receive(short_call(xid));
    server.core.on_no_reply(server.sink.delivered.back().call);
  }
  EXPECT_EQ(server.sink.delivered.size(), 3u);
  EXPECT_TRUE(server.sink.closes.empty());
  EXPECT_EQ(server.sink.forgotten.size(), 3u);
}

TEST(Responder, does_not_execute_a_Call_whose_Reads_failed) {
  PROVES("R8166-4.5.3-a");
  Endpoint server(server_settings());
  server.receive(call_with_read(5, 112, {segment(3, 8), segment(4, 8)}));
  IncomingCall& call = server.sink.reads[0].call;
  server.core.on_read_done(call, Reason::Shutdown);
  EXPECT_EQ(server.sink.closes, (Reasons{Reason::RdmaReadFailed}));
  EXPECT_TRUE(server.sink.forgotten.empty()) << "a Read is still under way";
  server.core.on_read_done(call, Reason::None);
  EXPECT_EQ(server.sink.forgotten, (Reasons{Reason::RdmaReadFailed}));
  EXPECT_TRUE(server.sink.delivered.empty());
  server.core.on_read_done(call, Reason::None);
  EXPECT_EQ(server.sink.forgotten.size(), 1u);
}

TEST(Responder, executes_nothing_more_on_a_connection_it_closed) {
  Endpoint server(server_settings(2));
  server.receive(call_with_read(1, 112, {segment(3, 8)}));
  server.receive(short_call(2));
  server.receive(short_call(3));
  EXPECT_EQ(server.sink.closes, (Reasons{Reason::RdmaCreditsExceeded}));
  server.core.on_read_done(server.sink.reads[0].call, Reason::None);
  EXPECT_EQ(server.sink.delivered.size(), 1u);
  EXPECT_EQ(server.sink.forgotten.size(), 1u);
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(40));
  EXPECT_TRUE(server.sink.sent.empty());
}

TEST(Responder, lets_delivered_Calls_run_on_when_the_connection_is_lost) {
  Settings settings = server_settings();
  settings.max_bytes = 100;
  Endpoint server(settings);
  server.receive(short_call(1));
  IncomingCall& running = server.sink.delivered[0].call;
  server.receive(call_with_read(2, 112, {segment(3, 100)}));
  server.receive(call_with_read(3, 112, {segment(4, 100)}));
  EXPECT_TRUE(server.core.responder().waiting() != 0);
  server.sink.actions();
  server.core.on_disconnect(Reason::TimedOut);
  EXPECT_EQ(server.sink.forgotten, (Reasons{Reason::TimedOut, Reason::TimedOut}));
  server.core.on_reply(running, plain_reply(40));
  EXPECT_EQ(server.sink.actions(), "forget forget forget");
  EXPECT_TRUE(server.sink.sent.empty());
  server.core.on_read_done(server.sink.reads[0].call, Reason::None);
  EXPECT_EQ(server.sink.delivered.size(), 1u);
}

TEST(Responder, serves_no_Calls_until_told_to) {
  Endpoint client(client_settings());
  client.receive(short_call(5));
  EXPECT_EQ(client.sink.drops, (Reasons{Reason::RdmaCallsNotServed}));
  Message broken = short_call(5);
  set_word(broken, 3, 9);
  client.receive(broken);
  EXPECT_TRUE(client.sink.errors.empty());
  client.core.serve_calls(2);
  client.receive(short_call(5));
  EXPECT_EQ(client.sink.delivered.size(), 1u);
  client.core.on_reply(client.sink.delivered[0].call, plain_reply(40));
  EXPECT_EQ(client.sink.sent[0].header.size(), 28u);
}

TEST(Responder, answers_ERR_CHUNK_to_any_chunk_without_chunk_support) {
  PROVES("R8167-5.3-d");
  Settings settings = client_settings();
  settings.serves_chunks = false;
  settings.credits_granted = 2;
  Endpoint client(settings);
  Header reply_chunk = header_of(7, 2);
  reply_chunk.reply_chunk = WriteChunk{{segment(1, 64)}};
  client.receive(call_with_read(5, 112, {segment(1, 8)}));
  client.receive(call_with_write(6, {segment(1, 8)}));
  client.receive(with_stream(reply_chunk, rpc_stream(7, CALL, 80)));
  client.receive(long_call(8, {segment(1, 80)}));
  ASSERT_EQ(client.sink.errors.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    expect_error(client.sink.errors[i], 5 + i, ERR_CHUNK);
    EXPECT_EQ(client.sink.error_reasons[i], Reason::RdmaChunksNotServed);
  }
  EXPECT_TRUE(client.sink.closes.empty());
  client.receive(short_call(9));
  EXPECT_EQ(client.sink.delivered.size(), 1u);
}

TEST(Responder, lets_a_Call_beyond_the_byte_limit_wait_without_Reads) {
  PROVES("R8166-3.4.4-c");
  Settings settings = server_settings(16);
  settings.max_bytes = 1000;
  settings.usual_result_bytes = 300;
  Endpoint server(settings);
  server.receive(call_with_read(1, 112, {segment(1, 600)}));
  server.receive(call_with_write(2, {segment(2, 0xffffffff)}));  // counted as 300
  server.receive(call_with_read(3, 112, {segment(3, 200)}));
  server.receive(call_with_write(4, {segment(4, 50)}));
  server.receive(short_call(5));
  EXPECT_EQ(server.sink.reads.size(), 1u);
  ASSERT_EQ(server.sink.delivered.size(), 2u);
  EXPECT_EQ(server.sink.delivered[0].arrival.xid, 2u);
  EXPECT_EQ(server.sink.delivered[1].arrival.xid, 5u) << "without chunks there is no wait";
  EXPECT_EQ(server.core.responder().waiting(), 2u) << "in order: 4 does not overtake 3";

  IncomingCall& first = server.sink.reads[0].call;
  server.core.on_read_done(first, Reason::None);
  server.core.on_reply(first, plain_reply(40));
  EXPECT_EQ(word(server.sink.sent[0].header, 2), 2u) << "no new Calls are asked for";
  EXPECT_EQ(server.sink.reads.size(), 1u) << "the memory is in use until the Reply is sent";
  server.core.on_sent(first);
  EXPECT_EQ(server.sink.reads.size(), 2u);
  EXPECT_EQ(server.core.responder().waiting(), 0u);
  EXPECT_EQ(server.sink.delivered.back().arrival.xid, 4u);
  EXPECT_EQ(server.sink.held.size(), 3u);
}

TEST(Responder, refuses_a_Call_whose_chunks_are_larger_than_all_of_the_limit) {
  Settings settings = server_settings();
  settings.max_bytes = 100;
  Endpoint server(settings);
  server.receive(call_with_read(1, 112, {segment(1, 101)}));
  EXPECT_TRUE(server.sink.reads.empty());
  ASSERT_EQ(server.sink.errors.size(), 1u);
  server.receive(call_with_read(2, 112, {segment(2, 100)}));
  EXPECT_EQ(server.sink.reads.size(), 1u);
}

TEST(Responder, counts_a_large_stream_that_came_inline) {
  Settings settings = server_settings();
  settings.max_bytes = 100'000;
  Endpoint server(settings);
  for (const std::uint32_t xid : {1u, 2u})
    server.receive(with_stream(header_of(xid, 8), rpc_stream(xid, CALL, 60'000)));
  server.receive(short_call(3));
  ASSERT_EQ(server.sink.delivered.size(), 2u);
  EXPECT_EQ(server.sink.delivered[1].arrival.xid, 3u) << "small streams are not counted";
  EXPECT_EQ(server.core.responder().waiting(), 1u);
}

TEST(Responder, ends_the_connection_of_a_peer_that_takes_no_Replies) {
  Endpoint server(server_settings(2));
  for (std::uint32_t xid = 1; xid <= 4; ++xid) {
    server.receive(short_call(xid));
    server.core.on_reply(server.sink.delivered.back().call, plain_reply(40));
  }
  EXPECT_TRUE(server.sink.closes.empty()) << "twice the credits may be on their way";
  server.receive(short_call(5));
  EXPECT_EQ(server.sink.delivered.size(), 4u);
  EXPECT_EQ(server.sink.closes.size(), 1u);
}

TEST(Responder, grants_a_credit_at_least_also_while_all_Calls_wait) {
  PROVES("R8166-3.3.1-b");
  Settings settings = server_settings(4);
  settings.max_bytes = 100;
  Endpoint server(settings);
  server.receive(call_with_read(1, 112, {segment(1, 100)}));
  server.core.on_read_done(server.sink.reads[0].call, Reason::None);
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(40));
  server.receive(call_with_read(2, 112, {segment(1, 100)}));
  EXPECT_TRUE(server.core.responder().waiting() != 0) << "the Reply is not sent yet";
  Message broken = short_call(3, 0);
  set_word(broken, 3, 9);
  server.receive(broken);
  EXPECT_EQ(word(server.sink.errors.back(), 2), 1u);
}

TEST(Responder, shares_a_byte_budget_and_shrinks_its_grant_to_one_beyond_it) {
  PROVES("R8166-3.3.1-b");
  Settings settings = server_settings(16);
  stag::testing::ManualLoop loop;
  const auto budget = std::make_shared<ByteBudget>(1000);
  {
    Endpoint* waiting = nullptr;
    const auto share = [&](const char* address) {
      return std::make_shared<ByteBudget::Share>(budget, address, loop,
                                                 [&] { waiting->core.on_budget(); });
    };
    const auto first = share("one"), second = share("two");
    settings.budget = first.get();
    Endpoint one(settings);
    settings.budget = second.get();
    Endpoint two(settings);
    waiting = &two;
    two.receive(short_call(2));
    one.receive(call_with_read(1, 112, {segment(1, 1000)}));
    two.core.on_reply(two.sink.delivered[0].call, plain_reply(40));
    EXPECT_EQ(word(two.sink.sent[0].header, 2), 1u);
    two.receive(call_with_read(1, 112, {segment(1, 10)}));
    EXPECT_EQ(two.core.responder().waiting(), 1u);
    two.core.on_budget();
    EXPECT_TRUE(two.sink.reads.empty());

    IncomingCall& call = one.sink.reads[0].call;
    one.core.on_read_done(call, Reason::None);
    one.core.on_reply(call, plain_reply(40));
    one.core.on_sent(call);
    EXPECT_EQ(budget->used(), 10u);
    loop.drain();
    EXPECT_EQ(two.sink.reads.size(), 1u);
    two.receive(short_call(3));
    two.core.on_reply(two.sink.delivered.back().call, plain_reply(40));
    EXPECT_EQ(word(two.sink.sent.back().header, 2), 16u);
  }
  EXPECT_EQ(budget->used(), 0u) << "a connection that ends gives back what it held";
}

}  // namespace
}  // namespace stag::rpcrdma
