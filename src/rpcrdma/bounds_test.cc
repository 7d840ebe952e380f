// What a peer can make a Responder hold: what it counts, and what waits until it is wanted.
#include <gtest/gtest.h>

#include "rpcrdma/recorder_test.h"
#include "testing/manual_loop.h"

namespace stag::rpcrdma {
namespace {

using namespace testing;

// As many of `length` bytes each.
Segments pieces(std::uint32_t handle, std::uint32_t count, std::uint32_t length = 1) {
  Segments segments;
  for (std::uint32_t i = 0; i < count; ++i) segments.push_back(segment(handle + i, length));
  return segments;
}

// Of all Reads posted so far the handles since `first`.
std::vector<std::uint32_t> handles_read(const Endpoint& server, std::size_t first = 0) {
  std::vector<std::uint32_t> handles;
  for (std::size_t i = first; i < server.sink.reads.size(); ++i)
    handles.push_back(server.sink.reads[i].from.handle);
  return handles;
}

void end_read(Endpoint& server, std::size_t index, Reason outcome = Reason::None) {
  server.core.on_read_done(server.sink.reads[index].call, outcome);
}

Settings settings_with_reads(std::uint32_t most) {
  Settings settings = server_settings();
  settings.max_reads = most;
  return settings;
}

using Handles = std::vector<std::uint32_t>;

TEST(ResponderBounds, posts_a_few_Reads_at_a_time_and_the_next_when_one_ends) {
  Endpoint server(settings_with_reads(2));
  Header header = header_of(5, 8);
  header.read_list.push_back({112, {segment(1, 4), segment(2, 0), segment(3, 8), segment(4, 0)}});
  header.read_list.push_back({124, {segment(5, 0), segment(6, 4), segment(7, 4)}});
  server.receive(with_stream(header, rpc_stream(5, CALL, 160)));
  EXPECT_EQ(handles_read(server), (Handles{1, 3}));
  end_read(server, 0);
  EXPECT_EQ(handles_read(server), (Handles{1, 3, 6}));
  end_read(server, 1);
  ASSERT_EQ(handles_read(server), (Handles{1, 3, 6, 7}));
  EXPECT_EQ(server.sink.reads[1].offset, 4u);
  EXPECT_EQ(server.sink.reads[2].item, 1u);
  EXPECT_EQ(server.sink.reads[2].offset, 0u);
  EXPECT_EQ(server.sink.reads[3].offset, 4u);
  end_read(server, 2);
  EXPECT_TRUE(server.sink.delivered.empty());
  end_read(server, 3);
  EXPECT_EQ(server.sink.delivered.size(), 1u);
}

TEST(ResponderBounds, lets_Calls_take_turns_with_their_Reads) {
  Endpoint server(settings_with_reads(2));
  server.receive(call_with_read(1, 112, pieces(10, 8)));
  server.receive(call_with_read(2, 112, pieces(20, 2)));
  for (std::size_t i = 0; i < 4; ++i) end_read(server, i);
  EXPECT_EQ(handles_read(server), (Handles{10, 11, 12, 20, 13, 21}));
  for (std::size_t i = 4; i < 10; ++i) end_read(server, i);
  EXPECT_EQ(server.sink.reads.size(), 10u);
  EXPECT_EQ(server.sink.delivered.size(), 2u);
}

TEST(ResponderBounds, posts_no_Read_after_one_that_failed) {
  Endpoint server(settings_with_reads(2));
  server.receive(call_with_read(1, 112, pieces(10, 4)));
  server.receive(call_with_read(2, 112, pieces(20, 1)));
  end_read(server, 0, Reason::Shutdown);
  end_read(server, 1);
  EXPECT_EQ(server.sink.reads.size(), 2u);
  server.core.on_disconnect(Reason::RdmaReadFailed);
  EXPECT_EQ(server.sink.forgotten.size(), 2u);
  EXPECT_TRUE(server.sink.delivered.empty());
}

TEST(ResponderBounds, counts_segments_beyond_the_first_sixteen) {
  Settings settings = server_settings();
  settings.max_bytes = 20'000;
  Endpoint server(settings);
  server.receive(call_with_read(1, 112, pieces(100, 16)));
  server.receive(call_with_read(2, 112, pieces(200, 64)));
  EXPECT_EQ(server.core.responder().waiting(), 0u);
  server.receive(call_with_write(3, pieces(300, 64, 0)));
  EXPECT_EQ(server.core.responder().waiting(), 1u) << "bytes or not";
  server.receive(call_with_write(4, pieces(400, 16, 0)));
  EXPECT_EQ(server.core.responder().waiting(), 1u);
}

TEST(ResponderBounds, take_what_just_fits_in_as_many_pieces_as_it_may_have) {
  Settings settings = server_settings();
  settings.max_bytes = 64;
  Endpoint server(settings);
  server.receive(call_with_read(1, 112, pieces(1, 64)));
  EXPECT_EQ(server.sink.reads.size(), 64u);
  EXPECT_TRUE(server.sink.errors.empty());
}

// Of three Calls with so much room for results, how many are in progress at a time.
std::size_t calls_at_a_time(std::uint32_t room, std::uint64_t longest_reply) {
  Settings settings = server_settings();
  settings.max_bytes = 16 << 20;
  Endpoint server(settings);
  server.sink.longest_reply = longest_reply;
  for (const std::uint32_t xid : {1u, 2u, 3u}) {
    Header header = header_of(xid, 8);
    header.reply_chunk = WriteChunk{{segment(xid, room)}};
    server.receive(with_stream(header, rpc_stream(xid, CALL, 160)));
  }
  EXPECT_TRUE(server.sink.errors.empty());
  return server.sink.delivered.size();
}

TEST(ResponderBounds, count_much_room_for_results_as_far_as_the_Reply_may_be_as_long) {
  constexpr std::uint32_t kMega = 1 << 20;
  EXPECT_EQ(calls_at_a_time(64 * kMega, 2 * kMega), 3u);
  EXPECT_EQ(calls_at_a_time(64 * kMega, 8 * kMega), 2u);
  EXPECT_EQ(calls_at_a_time(6 * kMega, 64 * kMega), 2u) << "it cannot be longer than the room";
  EXPECT_EQ(calls_at_a_time(64 * kMega, ~0ull), 1u) << "alone it is not refused";
}

TEST(ResponderBounds, count_all_room_for_results_of_a_Call_whose_arguments_are_not_there) {
  Settings settings = server_settings();
  settings.max_bytes = 16 << 20;
  Endpoint server(settings);
  for (const std::uint32_t xid : {1u, 2u}) {
    Header header = header_of(xid, 8);
    header.read_list.push_back({112, {segment(xid, 100)}});
    header.reply_chunk = WriteChunk{{segment(xid + 10, 64 << 20)}};
    server.receive(with_stream(header, rpc_stream(xid, CALL, 160)));
  }
  EXPECT_TRUE(server.sink.errors.empty());
  EXPECT_EQ(server.sink.reads.size(), 1u);
}

// Receives Calls from `xid` on and answers each with as much as an inline Reply holds; how many
// were delivered.
std::uint32_t answer_at_length(Endpoint& server, std::uint32_t xid, std::uint32_t calls) {
  const std::size_t before = server.sink.delivered.size();
  for (std::uint32_t i = 0; i < calls; ++i) {
    const std::size_t delivered = server.sink.delivered.size();
    server.receive(short_call(xid + i));
    if (server.sink.delivered.size() > delivered)
      server.core.on_reply(server.sink.delivered.back().call, plain_reply(16'000));
  }
  return static_cast<std::uint32_t>(server.sink.delivered.size() - before);
}

Settings settings_with_long_replies(std::uint64_t max_bytes) {
  Settings settings = server_settings(64);
  settings.thresholds.send = 16'384;
  settings.max_bytes = max_bytes;
  return settings;
}

TEST(ResponderBounds, counts_inline_Replies_that_are_not_taken) {
  Endpoint server(settings_with_long_replies(4 * 16'384));
  EXPECT_EQ(answer_at_length(server, 1, 20), 9u + 4) << "128 KiB, and what the limit allows";
  EXPECT_EQ(server.core.responder().waiting(), 7u);
  const auto take_Reply = [&](std::size_t i) { server.core.on_sent(server.sink.sent[i].call); };
  for (std::size_t i = 0; i < 9; ++i) take_Reply(i);
  EXPECT_EQ(server.core.responder().waiting(), 7u) << "those that count are still there";
  for (std::size_t i = 9; i < 13; ++i) take_Reply(i);
  EXPECT_EQ(server.core.responder().waiting(), 3u);
  EXPECT_EQ(server.sink.delivered.size(), 17u);
  EXPECT_EQ(answer_at_length(server, 21, 1), 1u) << "as little as ever when nothing waits";
}

TEST(ResponderBounds, give_back_what_Replies_took_with_the_connection) {
  stag::testing::ManualLoop loop;
  const auto budget = std::make_shared<ByteBudget>(1 << 20);
  const auto share = std::make_shared<ByteBudget::Share>(budget, "one", loop, [] {});
  Settings settings = settings_with_long_replies(1 << 20);
  settings.budget = share.get();
  {
    Endpoint server(settings);
    EXPECT_GT(answer_at_length(server, 1, 11), 9u);
    EXPECT_GT(budget->used(), 0u);
  }
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace stag::rpcrdma
