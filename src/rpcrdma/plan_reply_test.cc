#include <gtest/gtest.h>

#include "rpcrdma/plan.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using Indices = InlineVector<std::uint32_t, 2>;
using Writes = InlineVector<Placement, 4>;

// Segments with handles first, first + 1..., at offsets of a thousand times the handle.
WriteChunk chunk(std::uint32_t first, std::initializer_list<std::uint32_t> lengths) {
  WriteChunk made;
  for (std::uint32_t length : lengths) {
    made.segments.push_back({first, length, std::uint64_t{first} * 1000});
    ++first;
  }
  return made;
}

// A stream with these results, each behind 100 other bytes.
ReplyShape shape(std::initializer_list<std::uint32_t> results) {
  ReplyShape made;
  std::uint32_t at = 0;
  for (std::uint32_t length : results) {
    at += 100;
    Item item;
    item.position = at;
    item.length = length;
    item.ordinal = static_cast<std::uint32_t>(made.items.size());
    made.items.push_back(item);
    at += length + static_cast<std::uint32_t>(xdr_pad(length));
  }
  made.length = at + 100;
  return made;
}

std::vector<std::uint32_t> lengths(const WriteChunk& chunk) {
  std::vector<std::uint32_t> made;
  for (const Segment& segment : chunk.segments) made.push_back(segment.length);
  return made;
}
using Lengths = std::vector<std::uint32_t>;

ReplyPlan plan(const ReplyShape& reply, const WriteList& list,
               const std::optional<WriteChunk>& reply_chunk = std::nullopt,
               std::uint32_t threshold = 1024) {
  const auto made = plan_reply(reply, list, reply_chunk, threshold);
  EXPECT_TRUE(made.ok());
  return made ? *made : ReplyPlan{};
}

TEST(PlanReply, sends_a_small_Reply_inline_and_writes_nothing) {
  const ReplyPlan made = plan(shape({}), {});
  EXPECT_EQ(made.form, Form::Inline);
  EXPECT_EQ(made.stream_length, 100u);
  EXPECT_TRUE(made.writes.empty());
}

TEST(PlanReply, moves_an_eligible_result_into_its_chunk_even_if_it_would_fit_inline) {
  PROVES("R8166-4.3.2-b");
  const ReplyPlan made = plan(shape({40}), {chunk(1, {64})});
  EXPECT_EQ(made.reduced, (Indices{0}));
  EXPECT_EQ(made.writes, (Writes{{0, 0, {1, 40, 1000}}}));
  EXPECT_EQ(made.stream_length, 200u);
}

TEST(PlanReply, fills_segments_one_after_the_other_and_returns_what_each_holds) {
  PROVES("R8166-3.4.6-d", "R8166-3.4.6-f", "R8166-4.4.3-a");
  const ReplyPlan made = plan(shape({10}), {chunk(1, {8, 8, 8})});
  EXPECT_EQ(made.writes, (Writes{{0, 0, {1, 8, 1000}}, {0, 8, {2, 2, 2000}}}));
  EXPECT_EQ(lengths(made.write_list[0]), (Lengths{8, 2, 0}));
}

TEST(PlanReply, skips_empty_segments_of_the_Requester_and_returns_them) {
  PROVES("R8166-3.4.3-a");
  const ReplyPlan made = plan(shape({10}), {chunk(1, {0, 8, 0, 8})});
  EXPECT_EQ(made.writes, (Writes{{0, 0, {2, 8, 2000}}, {0, 8, {4, 2, 4000}}}));
  EXPECT_EQ(lengths(made.write_list[0]), (Lengths{0, 8, 0, 2}));
}

TEST(PlanReply, writes_no_pad_though_there_is_room) {
  PROVES("R8166-3.4.6.2-b", "R8166-3.4.6.2-c");
  const ReplyPlan made = plan(shape({5}), {chunk(1, {8})});
  EXPECT_EQ(made.writes, (Writes{{0, 0, {1, 5, 1000}}}));
  EXPECT_EQ(lengths(made.write_list[0]), (Lengths{5}));
  EXPECT_EQ(made.stream_length, 200u);
}

TEST(PlanReply, repeats_count_handles_and_offsets_of_every_chunk) {
  PROVES("R8166-3.4.6-e", "R8166-3.1-a");
  const WriteList offered{chunk(1, {8, 8, 8}), chunk(4, {16})};
  const ReplyPlan made = plan(shape({10}), offered, chunk(7, {100, 200}));
  ASSERT_EQ(made.write_list.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(made.write_list[i].segments.size(), offered[i].segments.size());
    for (std::size_t k = 0; k < offered[i].segments.size(); ++k) {
      EXPECT_EQ(made.write_list[i].segments[k].handle, offered[i].segments[k].handle);
      EXPECT_EQ(made.write_list[i].segments[k].offset, offered[i].segments[k].offset);
    }
  }
  ASSERT_TRUE(made.reply_chunk.has_value());
  EXPECT_EQ(made.reply_chunk->segments[1], (Segment{8, 0, 8000}));
}

TEST(PlanReply, puts_one_result_into_each_chunk_in_order_and_leaves_the_rest_inline) {
  PROVES("R8166-3.4.6-c", "R8166-4.3.2.1-b", "R8166-4.3.2.1-c");
  const ReplyPlan made = plan(shape({12, 8, 20}), {chunk(1, {64}), chunk(2, {64})});
  EXPECT_EQ(made.reduced, (Indices{0, 1}));
  EXPECT_EQ(made.writes, (Writes{{0, 0, {1, 12, 1000}}, {1, 0, {2, 8, 2000}}}));
  EXPECT_EQ(made.stream_length, 400u + 20);
}

TEST(PlanReply, returns_chunks_that_got_nothing_as_unused) {
  PROVES("R8166-4.3.2.2-c", "R8166-4.3.2.2-d", "R8166-4.3.2.2-e", "R8166-3.4.6-h");
  const ReplyPlan made = plan(shape({}), {chunk(1, {8, 8, 8}), chunk(4, {64}), chunk(5, {64})});
  ASSERT_EQ(made.write_list.size(), 3u);
  EXPECT_EQ(lengths(made.write_list[0]), (Lengths{0, 0, 0}));
  EXPECT_EQ(lengths(made.write_list[1]), (Lengths{0}));
  EXPECT_EQ(lengths(made.write_list[2]), (Lengths{0}));
  EXPECT_TRUE(made.writes.empty());
}

TEST(PlanReply, gives_a_chunk_to_the_next_result_when_one_is_absent) {
  PROVES("R8166-4.3.2.2-a");
  ReplyShape reply = shape({12});
  reply.items[0].ordinal = 1;  // the first result took an arm without data
  const ReplyPlan made = plan(reply, {chunk(1, {64}), chunk(2, {64})});
  EXPECT_EQ(made.writes, (Writes{{0, 0, {1, 12, 1000}}}));
  EXPECT_EQ(lengths(made.write_list[1]), (Lengths{0}));
}

TEST(PlanReply, leaves_every_result_at_its_own_place_where_the_binding_pairs_by_index) {
  ReplyShape reply = shape({12, 8});
  reply.pairing = Pairing::ByIndex;
  reply.items[0].ordinal = 1;
  reply.items[1].ordinal = 3;
  const ReplyPlan made = plan(reply, {chunk(1, {64}), chunk(2, {64}), chunk(3, {64})});
  EXPECT_EQ(made.reduced, (Indices{0}));
  EXPECT_EQ(made.writes, (Writes{{0, 0, {2, 12, 2000}}}));
  EXPECT_EQ(lengths(made.write_list[0]), (Lengths{0}));
}

TEST(PlanReply, returns_an_empty_chunk_as_empty_and_its_result_inline) {
  PROVES("R8166-4.3.2.3-c", "R8166-4.3.2.3-d");
  const ReplyPlan made = plan(shape({12, 8, 20}), {chunk(1, {64}), {}, chunk(3, {64})});
  EXPECT_EQ(made.reduced, (Indices{0, 2}));
  ASSERT_EQ(made.write_list.size(), 3u);
  EXPECT_TRUE(made.write_list[1].segments.empty());
  EXPECT_EQ(lengths(made.write_list[2]), (Lengths{20}));
  EXPECT_EQ(made.stream_length, 400u + 8);
}

TEST(PlanReply, lets_a_result_without_bytes_take_its_chunk) {
  const ReplyPlan made = plan(shape({0, 12}), {chunk(1, {64}), chunk(2, {64})});
  EXPECT_EQ(made.writes, (Writes{{1, 0, {2, 12, 2000}}}));
  EXPECT_EQ(lengths(made.write_list[0]), (Lengths{0}));
}

TEST(PlanReply, never_reduces_what_is_not_eligible) {
  const ReplyPlan made = plan(shape({}), {chunk(1, {64})});
  EXPECT_TRUE(made.reduced.empty());
  EXPECT_EQ(made.stream_length, 100u);
}

TEST(PlanReply, refuses_a_result_larger_than_its_chunk_before_anything_is_written) {
  PROVES("R8166-4.5.3-b");
  const auto made = plan_reply(shape({12, 65}), {chunk(1, {64}), chunk(2, {32, 32})}, {}, 1024);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error(), Reason::RdmaWriteChunkTooSmall);
  EXPECT_TRUE(plan_reply(shape({12, 64}), {chunk(1, {64}), chunk(2, {32, 32})}, {}, 1024).ok());
  EXPECT_FALSE(plan_reply(shape({12}), {chunk(1, {0, 0})}, {}, 1024).ok());
}

TEST(PlanReply, uses_the_Reply_chunk_exactly_when_the_Reply_exceeds_the_threshold) {
  PROVES("R8166-3.5.3-a", "R8166-3.5.3-h", "R8166-4.3.3-c");
  // Header: 28 bytes and a Reply chunk of one segment, 20 bytes more.
  ReplyShape reply = shape({});
  reply.length = 1024 - 48;
  const ReplyPlan fits = plan(reply, {}, chunk(1, {4096}));
  EXPECT_EQ(fits.form, Form::Inline);
  EXPECT_EQ(lengths(*fits.reply_chunk), (Lengths{0}));
  reply.length += 4;
  const ReplyPlan longer = plan(reply, {}, chunk(1, {4096}));
  EXPECT_EQ(longer.form, Form::Long);
  EXPECT_EQ(longer.writes, (Writes{{kReplyStream, 0, {1, 1024 - 44, 1000}}}));
  EXPECT_EQ(lengths(*longer.reply_chunk), (Lengths{1024 - 44}));
}

TEST(PlanReply, fills_a_Reply_chunk_like_a_Write_chunk) {
  PROVES("R8166-4.3.3-e", "R8166-4.3.3-f", "R8166-3.5.3-j");
  ReplyShape reply = shape({});
  reply.length = 1500;
  const ReplyPlan made = plan(reply, {}, chunk(1, {1024, 1024, 64}));
  EXPECT_EQ(made.writes,
            (Writes{{kReplyStream, 0, {1, 1024, 1000}}, {kReplyStream, 1024, {2, 476, 2000}}}));
  EXPECT_EQ(lengths(*made.reply_chunk), (Lengths{1024, 476, 0}));
  // With the pads of the items in it.
  reply = shape({1001});
  EXPECT_EQ(reply.length, 100u + 1004 + 100);
  EXPECT_EQ(lengths(*plan(reply, {}, chunk(1, {4096})).reply_chunk), (Lengths{1204}));
}

TEST(PlanReply, reduces_first_and_then_chooses_the_form) {
  PROVES("R8166-3.5.3-g", "R8166-3.5.3-l");
  const ReplyPlan small = plan(shape({4000}), {chunk(1, {4096})}, chunk(2, {4096}));
  EXPECT_EQ(small.form, Form::Inline);
  EXPECT_EQ(lengths(*small.reply_chunk), (Lengths{0}));

  ReplyShape large = shape({4000});
  large.length += 2000;
  const ReplyPlan made = plan(large, {chunk(1, {4096})}, chunk(2, {4096}));
  EXPECT_EQ(made.form, Form::Long);
  EXPECT_EQ(made.writes, (Writes{{0, 0, {1, 4000, 1000}}, {kReplyStream, 0, {2, 2200, 2000}}}));
  EXPECT_EQ(lengths(made.write_list[0]), (Lengths{4000}));
  EXPECT_EQ(lengths(*made.reply_chunk), (Lengths{2200}));
}

TEST(PlanReply, refuses_a_Reply_that_nothing_can_hold) {
  PROVES("R8166-4.5.3-b");
  ReplyShape reply = shape({});
  reply.length = 2000;
  EXPECT_EQ(plan_reply(reply, {}, std::nullopt, 1024).error(), Reason::RdmaReplyTooLarge);
  EXPECT_EQ(plan_reply(reply, {}, chunk(1, {1996}), 1024).error(), Reason::RdmaReplyChunkTooSmall);
  EXPECT_TRUE(plan_reply(reply, {}, chunk(1, {2000}), 1024).ok());
  EXPECT_EQ(plan_reply(reply, {}, WriteChunk{}, 1024).error(), Reason::RdmaReplyChunkTooSmall);
}

TEST(PlanReply, refuses_when_the_lists_to_repeat_exceed_the_threshold) {
  WriteList list;
  for (std::uint32_t i = 0; i < 50; ++i) list.push_back(chunk(i, {64}));
  EXPECT_EQ(plan_reply(shape({}), list, chunk(1, {4096}), 1024).error(), Reason::RdmaReplyTooLarge);
}

}  // namespace
}  // namespace stag::rpcrdma
