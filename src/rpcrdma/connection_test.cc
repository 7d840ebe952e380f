#include "rpcrdma/connection.h"

#include <gtest/gtest.h>

#include <deque>

#include "rpcrdma/recorder_test.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using namespace testing;
using Xids = std::vector<std::uint32_t>;
using Reasons = std::vector<Reason>;

// An end with both roles: `requested` for its own Calls, `granted` for the peer's.
Settings both(std::uint32_t requested, std::uint32_t granted) {
  Settings settings;
  settings.credits_requested = requested;
  settings.credits_granted = granted;
  return settings;
}

ReplyShape reply_of(std::uint32_t length) {
  ReplyShape shape;
  shape.length = length;
  return shape;
}

TEST(Connection, tells_a_Call_from_a_Reply_with_the_same_XID_by_the_direction_word) {
  PROVES("R8167-2.4-b", "R8167-2.4.1-a", "R8166-2.2.2-a");
  TestCall call(5);
  Endpoint end(both(8, 8));
  end.core.on_call(call);
  end.receive(short_call(5));
  ASSERT_EQ(end.sink.delivered.size(), 1u) << "the peer's Call is executed";
  EXPECT_TRUE(end.sink.replies.empty()) << "ours stays pending";
  end.receive(short_reply(5, 8));
  EXPECT_EQ(end.sink.replies, (Xids{5}));
  end.core.on_reply(end.sink.delivered[0].call, reply_of(40));
  EXPECT_EQ(end.sink.sent[0].xid, 5u);
}

TEST(Connection, counts_credits_of_the_two_directions_apart) {
  PROVES("R8167-4.1-a", "R8167-4.1-b", "R8167-4.1-d", "R8167-4.1-e");
  std::deque<TestCall> calls;
  Endpoint end(both(64, 2));
  for (std::uint32_t xid = 1; xid <= 40; ++xid) end.core.on_call(calls.emplace_back(xid));
  end.receive(short_reply(1, 30));
  EXPECT_EQ(end.core.requester().in_flight(), 30u);
  // The peer's Calls ask for one credit: no grant. Ours are exhausted and do not hold it up.
  end.receive(short_call(1, 1));
  EXPECT_EQ(end.core.requester().credit_limit(), 30u) << "a request is no grant";
  end.core.on_reply(end.sink.delivered[0].call, reply_of(40));
  EXPECT_EQ(word(end.sink.sent[0].header, 2), 2u);
  end.receive(short_reply(2, 30));
  EXPECT_EQ(end.core.requester().credit_limit(), 30u);
  EXPECT_EQ(end.core.requester().in_flight(), 30u);
  EXPECT_EQ(word(end.sink.call_headers[5], 2), 64u);
}

TEST(Connection, goes_on_in_each_direction_while_the_credits_of_the_other_are_exhausted) {
  PROVES("R8167-4.1-a");
  std::deque<TestCall> calls;
  Endpoint end(both(8, 2));
  for (std::uint32_t xid = 1; xid <= 9; ++xid) end.core.on_call(calls.emplace_back(xid));
  end.receive(short_reply(1, 3));
  ASSERT_EQ(end.sink.calls.size(), 4u) << "ours are exhausted";
  end.receive(short_call(101));
  end.receive(short_call(102));
  ASSERT_EQ(end.sink.delivered.size(), 2u) << "and the peer's now, too";
  end.receive(short_reply(2, 3));
  EXPECT_EQ(end.sink.calls.size(), 5u);
  TestCall late(50);
  for (std::uint32_t xid = 3; xid <= 9; ++xid) end.receive(short_reply(xid, 3));
  end.core.on_call(late);
  EXPECT_EQ(end.sink.calls.back(), 50u);
  end.core.on_reply(end.sink.delivered[0].call, reply_of(40));
  EXPECT_EQ(end.sink.sent.size(), 1u);
  end.core.on_cancel(late);
}

TEST(Connection, uses_one_credit_for_its_own_Calls_before_their_first_Reply_in_either_direction) {
  PROVES("R8167-4.1-g", "R8167-4.1-h", "R8167-5.1-c");
  std::deque<TestCall> calls;
  Endpoint server(both(4, 64));
  // Calls of the peer carry no grant for ours.
  server.receive(short_call(100, 50));
  for (std::uint32_t xid = 1; xid <= 10; ++xid) server.core.on_call(calls.emplace_back(xid));
  EXPECT_EQ(server.sink.calls, (Xids{1}));
  EXPECT_EQ(word(server.sink.call_headers[0], 2), 4u);
  server.receive(short_reply(1, 2));
  EXPECT_EQ(server.sink.calls, (Xids{1, 2, 3}));
}

TEST(Connection, has_Receives_for_its_Replies_and_for_Calls_of_the_peer) {
  PROVES("R8167-4.3.1-a", "R8167-4.3.2-b");
  std::deque<TestCall> calls;
  Endpoint end(both(10, 7));
  std::uint32_t received = 0;
  const auto expect_enough = [&] {
    EXPECT_GE(end.sink.receives - received, end.core.requester().in_flight() + 7);
  };
  const auto receive = [&](const Message& message) {
    end.receive(message);
    ++received;
    expect_enough();
  };
  EXPECT_GE(end.sink.receives, 17u);
  for (std::uint32_t xid = 1; xid <= 30; ++xid) end.core.on_call(calls.emplace_back(xid));
  receive(short_reply(1, 10));
  EXPECT_EQ(end.core.requester().in_flight(), 10u);
  // All Calls that the peer may send and all Replies, in one burst.
  for (std::uint32_t xid = 101; xid <= 107; ++xid) receive(short_call(xid));
  EXPECT_EQ(end.sink.delivered.size(), 7u);
  for (std::uint32_t xid = 2; xid <= 30; ++xid) receive(short_reply(xid, 10));
}

TEST(Connection, ignores_the_credits_of_a_message_whose_direction_it_cannot_tell) {
  PROVES("R8167-4.1-f");
  std::deque<TestCall> calls;
  Endpoint end(both(32, 8));
  for (std::uint32_t xid = 1; xid <= 20; ++xid) end.core.on_call(calls.emplace_back(xid));
  end.receive(short_reply(1, 16));
  ASSERT_EQ(end.core.requester().credit_limit(), 16u);
  Header ambiguous = header_of(999, 1, RDMA_NOMSG);
  ambiguous.reply_chunk = WriteChunk{};
  ambiguous.reply_chunk->segments.push_back({1, 100, 0});
  end.receive(with_stream(ambiguous, {}));
  end.receive(error_chunk(999, 1));
  Message odd = short_reply(2, 1);
  set_word(odd, 8, 7);  // neither Call nor Reply
  end.receive(odd);
  end.receive(with_stream(header_of(2, 1), Message(4)));
  EXPECT_EQ(end.core.requester().credit_limit(), 16u);
  EXPECT_EQ(end.core.responder().grant(), 8u);
  EXPECT_EQ(end.sink.drops, (Reasons{Reason::RdmaReplyUnmatched, Reason::RdmaErrorUnmatched,
                                     Reason::RdmaDirectionBad, Reason::RdmaPayloadTooShort}));
  EXPECT_TRUE(end.sink.errors.empty());
}

TEST(Connection, drops_a_broken_message_that_may_be_a_Reply_and_answers_what_may_be_a_Call) {
  TestCall call(5);
  Endpoint end(both(8, 8));
  end.core.on_call(call);
  for (std::uint32_t xid : {5u, 6u}) {
    Message broken = short_reply(xid, 8);
    set_word(broken, 5, 3);  // a presence word
    end.receive(broken);
  }
  EXPECT_EQ(end.sink.drops, (Reasons{Reason::RdmaHeaderMalformed}));
  ASSERT_EQ(end.sink.errors.size(), 1u);
  EXPECT_EQ(word(end.sink.errors[0], 0), 6u);
  // With a Read list it cannot be a Reply, whatever its XID.
  Message call_like = golden("long_call");
  set_word(call_like, 0, 5);
  call_like.resize(60);
  end.receive(call_like);
  EXPECT_EQ(end.sink.errors.size(), 2u);
  EXPECT_EQ(end.core.requester().in_flight(), 1u);
}

TEST(Connection, never_sends_an_error_as_a_Requester_alone_whatever_it_receives) {
  PROVES("R8166-4.6.1-c", "R8166-4.2.4-e", "R8166-4.1.2-e");
  TestCall call(0x11223344);
  Endpoint client(both(8, 0));
  client.core.on_call(call);
  for (const char* name : {"read_list_of_three", "write_list", "reply_chunk", "long_call"}) {
    const Message message = golden(name);
    for (std::size_t length = 0; length <= message.size(); ++length)
      client.receive({message.begin(), message.begin() + static_cast<std::ptrdiff_t>(length)});
  }
  for (std::uint32_t proc : {2u, 3u, 5u}) {
    Message message = short_reply(call.xid, 8);
    set_word(message, 3, proc);
    client.receive(message);
    EXPECT_EQ(client.sink.drops.back(), proc == 2   ? Reason::RdmaMsgp
                                        : proc == 3 ? Reason::RdmaDone
                                                    : Reason::RdmaProcedureUnknown);
  }
  EXPECT_TRUE(client.sink.errors.empty());
  EXPECT_TRUE(client.sink.closes.empty());
  EXPECT_EQ(client.core.requester().in_flight(), 1u);
  client.receive(short_reply(call.xid, 8));
  EXPECT_EQ(client.sink.replies.size(), 1u);
}

TEST(Connection, answers_no_broken_Reply_although_it_serves_Calls) {
  PROVES("R8166-4.2.4-e", "R8166-4.6.1-c", "R8166-4.5-d");
  TestCall call(5, 80, 5000);
  Endpoint end(both(8, 8));
  end.core.on_call(call);
  Header header = decode_header(end.sink.call_headers[0])->header;
  header.reply_chunk->segments[0].length = 0;
  const Message good = with_stream(header, rpc_stream(5, REPLY, 40));
  std::vector<Message> broken;
  for (std::size_t length = 0; length < good.size() - 40 + 8; ++length)
    broken.push_back({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)});
  const auto changed = [&](std::size_t index, std::uint32_t value) {
    set_word(broken.emplace_back(good), index, value);
  };
  for (const std::uint32_t version : {0u, 2u}) changed(1, version);
  for (const std::uint32_t proc : {1u, 2u, 3u, 5u}) changed(3, proc);
  for (const std::size_t list : {4u, 5u, 6u}) changed(list, 9);
  changed(7, 0xffffffff);  // segments in the Reply chunk
  changed(8, ~word(good, 8));
  changed(9, 5001);
  changed(12, 6);  // the XID inside
  changed(13, 7);  // neither Call nor Reply
  Header with_read_list = header;
  with_read_list.read_list.push_back({112, {{1, 8, 0}}});
  broken.push_back(with_stream(with_read_list, rpc_stream(5, REPLY, 160)));
  for (std::size_t i = 0; i < broken.size(); ++i) {
    end.receive(broken[i]);
    EXPECT_EQ(end.sink.drops.size(), i + 1);
    ASSERT_TRUE(end.sink.errors.empty()) << i;
    ASSERT_TRUE(end.sink.replies.empty()) << i;
    ASSERT_TRUE(end.sink.failed.empty()) << i;
  }
  EXPECT_TRUE(end.sink.closes.empty());
  end.receive(good);
  EXPECT_EQ(end.sink.replies, (Xids{5}));
}

TEST(Connection, takes_RDMA_NOMSG_only_with_its_stream_in_the_chunk_of_its_direction) {
  PROVES("R8166-4.2.4-d");
  TestCall call(5, 80, 5000);
  ResultBound result;
  result.max_length = 5000;
  call.bound.results.push_back(result);
  Endpoint end(both(8, 8));
  end.core.on_call(call);
  Header reply = decode_header(end.sink.call_headers[0])->header;
  reply.proc = RDMA_NOMSG;
  reply.reply_chunk->segments[0].length = 0;
  end.receive(with_stream(reply, {}));
  Header without = reply;
  without.reply_chunk.reset();
  end.receive(with_stream(without, {}));
  EXPECT_EQ(end.sink.drops, (Reasons{Reason::RdmaReplyFormBad, Reason::RdmaStreamMissing}));
  EXPECT_TRUE(end.sink.errors.empty());
  without.xid = 6;
  end.receive(with_stream(without, {}));
  ASSERT_EQ(end.sink.errors.size(), 1u) << "a Call with nothing but a Write list";
  EXPECT_EQ(word(end.sink.errors[0], 4), ERR_CHUNK);
  EXPECT_TRUE(end.sink.replies.empty());
  reply.reply_chunk->segments[0].length = 400;
  end.receive(with_stream(reply, {}));
  EXPECT_EQ(end.sink.replies, (Xids{5}));
}

TEST(Connection, drops_a_Reply_with_a_Read_list) {
  TestCall call(5);
  Endpoint client(both(8, 8));
  client.core.on_call(call);
  Header header = header_of(5, 8);
  header.read_list.push_back({112, {{1, 8, 0}}});
  client.receive(with_stream(header, rpc_stream(5, REPLY, 160)));
  EXPECT_EQ(client.sink.drops, (Reasons{Reason::RdmaReplyHasReadList}));
  EXPECT_TRUE(client.sink.errors.empty());
  EXPECT_TRUE(client.sink.replies.empty());
}

TEST(Connection, looks_an_error_up_among_its_own_Calls_only) {
  PROVES("R8166-4.2.4-f");
  TestCall call(5);
  Endpoint end(both(8, 8));
  end.receive(short_call(6));
  end.core.on_call(call);
  end.receive(error_chunk(6));
  end.receive(copy(encode_error({6, 7, 8, ERR_VERS, 7, 7}).bytes()));
  EXPECT_EQ(end.sink.drops, (Reasons{Reason::RdmaErrorUnmatched, Reason::RdmaErrorUnmatched}));
  EXPECT_EQ(end.core.responder().in_service(), 1u) << "the peer's Call goes on";
  EXPECT_TRUE(end.sink.errors.empty());
  EXPECT_TRUE(end.sink.closes.empty());
  end.core.on_reply(end.sink.delivered[0].call, reply_of(40));
  EXPECT_EQ(end.sink.sent.size(), 1u);
  end.receive(error_chunk(5, 0));
  EXPECT_EQ(end.sink.failed, (Xids{5}));
  EXPECT_EQ(end.core.requester().credit_limit(), 1u);
}

TEST(Connection, understands_ERR_VERS_of_any_version_and_nothing_else_of_another_version) {
  TestCall call(5);
  Endpoint client(both(8, 8));
  client.core.on_call(call);
  Message reply = short_reply(5, 8);
  set_word(reply, 1, 2);
  client.receive(reply);
  EXPECT_EQ(client.sink.drops, (Reasons{Reason::RdmaVersionUnsupported}));
  Message error = error_chunk(5);
  set_word(error, 1, 2);
  client.receive(error);
  EXPECT_EQ(client.sink.drops.back(), Reason::RdmaErrorMalformed);
  EXPECT_EQ(client.core.requester().in_flight(), 1u);
  client.receive(copy(encode_error({5, 2, 8, ERR_VERS, 2, 2}).bytes()));
  ASSERT_EQ(client.sink.failures.size(), 1u);
  EXPECT_EQ(client.sink.failures[0].reason, Reason::RdmaPeerRefusedVersion);
  EXPECT_TRUE(client.sink.errors.empty());
}

TEST(Connection, sends_Calls_and_Replies_of_the_reverse_direction_like_those_of_the_forward_one) {
  PROVES("R8167-5.1-b", "R8167-5.2-a", "R8167-5.2-b", "R8167-5.2-c");
  TestCall callback(77);
  Endpoint server(both(2, 64)), client(both(128, 0));
  client.core.serve_calls(16);
  server.core.on_call(callback);
  const Message& header = server.sink.call_headers[0];
  EXPECT_EQ(copy(header),
            from_hex("0000004d 00000001 00000002 00000000 00000000 00000000 00000000"));
  Message message = header;
  const Message stream = rpc_stream(77, CALL, 80);
  message.insert(message.end(), stream.begin(), stream.end());
  client.receive(message);
  ASSERT_EQ(client.sink.delivered.size(), 1u);
  client.core.on_reply(client.sink.delivered[0].call, reply_of(40));
  EXPECT_EQ(client.sink.sent[0].header,
            from_hex("0000004d 00000001 00000010 00000000 00000000 00000000 00000000"));
}

TEST(Connection, takes_and_sends_messages_of_1024_bytes_from_the_start) {
  PROVES("R8166-3.3.3-a");
  TestCall call(5, 1024 - 28);
  call.bound.payload_max = 1024 - 28;
  Endpoint client(both(8, 0)), server(both(1, 8));
  client.core.on_call(call);
  EXPECT_FALSE(call.plan().needs_memory());
  Message message = client.sink.call_headers[0];
  const Message stream = rpc_stream(5, CALL, 1024 - 28);
  message.insert(message.end(), stream.begin(), stream.end());
  ASSERT_EQ(message.size(), 1024u);
  server.receive(message);
  server.core.on_reply(server.sink.delivered[0].call, reply_of(1024 - 28));
  EXPECT_EQ(server.sink.sent[0].plan.form, Form::Inline);
  message = server.sink.sent[0].header;
  const Message reply = rpc_stream(5, REPLY, 1024 - 28);
  message.insert(message.end(), reply.begin(), reply.end());
  client.receive(message);
  EXPECT_EQ(client.sink.replies, (Xids{5}));
}

TEST(Connection, sends_the_same_headers_whatever_private_data_was_exchanged) {
  PROVES("R8797-1-b");
  TestCall one(5), two(5);
  Settings settings = both(8, 8);
  Endpoint plain(settings);
  settings.thresholds = negotiate({65536, 65536, true}, PrivateData{65536, 65536, true});
  Endpoint negotiated(settings);
  plain.core.on_call(one);
  negotiated.core.on_call(two);
  EXPECT_EQ(plain.sink.call_headers, negotiated.sink.call_headers);
}

TEST(Connection, does_nothing_more_after_a_wrong_invalidation) {
  TestCall call(5);
  Endpoint end(both(8, 8));
  end.core.on_call(call);
  end.receive(short_reply(5, 8), 77);
  EXPECT_EQ(end.sink.closes, (Reasons{Reason::RdmaWrongHandleInvalidated}));
  end.receive(short_call(6));
  end.receive(short_reply(5, 8));
  EXPECT_TRUE(end.sink.delivered.empty());
  EXPECT_TRUE(end.sink.replies.empty());
}

TEST(Connection, survives_every_single_changed_word_of_every_golden_message) {
  for (const char* name : {"null_call", "read_list_of_three", "write_list", "empty_write_chunk",
                           "reply_chunk", "long_call", "err_vers", "err_chunk"}) {
    const Message message = golden(name);
    for (std::size_t index = 0; index < message.size() / 4; ++index) {
      TestCall call(0x11223344, 80, 5000);
      Endpoint end(both(4, 4));
      end.core.on_call(call);
      end.sink.long_stream = rpc_stream(0x11223344, CALL, 80);
      for (std::uint32_t value : {0u, 1u, 2u, 3u, 28u, 0x7fffffffu, 0xffffffffu}) {
        Message changed = message;
        set_word(changed, index, value);
        end.receive(changed);
        while (!end.sink.reads.empty()) {
          IncomingCall& read = end.sink.reads.back().call;
          end.sink.reads.pop_back();
          end.core.on_read_done(read, Reason::None);
        }
        for (const Delivered& delivered : end.sink.delivered) {
          end.core.on_reply(delivered.call, reply_of(2000));
          end.core.on_sent(delivered.call);
        }
        end.sink.delivered.clear();
      }
      EXPECT_EQ(end.core.responder().in_service(), 0u);
      EXPECT_TRUE(end.sink.closes.empty());
    }
  }
}

}  // namespace
}  // namespace stag::rpcrdma
