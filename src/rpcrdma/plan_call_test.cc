#include <gtest/gtest.h>

#include "rpcrdma/plan.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using Indices = InlineVector<std::uint32_t, 2>;

CallLimits limits_of(std::uint32_t threshold, PeerQuirks quirks = {}) {
  return {.call_threshold = threshold, .reply_threshold = threshold, .quirks = quirks};
}

Item item(std::uint32_t position, std::uint32_t length, std::uint32_t segments = 1) {
  Item made;
  made.position = position;
  made.length = length;
  made.segments = segments;
  return made;
}

CallShape shape(std::uint32_t length, Items items = {}, std::uint32_t segments = 1) {
  return {.length = length, .segments = segments, .items = std::move(items)};
}

ReplyBound bound(std::uint32_t payload_max, std::initializer_list<std::uint32_t> results = {}) {
  ReplyBound made;
  made.payload_max = payload_max;
  for (std::uint32_t length : results) {
    ResultBound result;
    result.max_length = length;
    made.results.push_back(result);
  }
  return made;
}

Result<CallPlan, Reason> try_plan(const CallShape& call, const ReplyBound& reply,
                                  const CallLimits& limits) {
  CallPlan made;
  const Reason reason = plan_call(call, reply, limits, made);
  if (reason != Reason::None) return Failure{reason};
  return made;
}

CallPlan plan(const CallShape& call, const ReplyBound& reply, const CallLimits& limits) {
  const auto made = try_plan(call, reply, limits);
  EXPECT_TRUE(made.ok());
  return made ? *made : CallPlan{};
}

TEST(PlanCall, sends_a_small_Call_with_a_small_Reply_without_any_chunk) {
  PROVES("R8166-4.3.3-b", "R8166-4.3.1-b", "R8166-4.3.2-a");
  const CallPlan made = plan(shape(128), bound(200), limits_of(1024));
  EXPECT_EQ(made.form, Form::Inline);
  EXPECT_FALSE(made.needs_memory());
  EXPECT_EQ(made.stream_length, 128u);
  EXPECT_EQ(made.header_size, 28u);
}

TEST(PlanCall, fills_the_threshold_to_the_last_byte_and_not_further) {
  PROVES("R8166-4.2.4-g", "R8166-3.5.3-a");
  EXPECT_EQ(plan(shape(1024 - 28), bound(0), limits_of(1024)).form, Form::Inline);
  const CallPlan longer = plan(shape(1024 - 24), bound(0), limits_of(1024));
  EXPECT_EQ(longer.form, Form::Long);
  EXPECT_EQ(longer.stream_length, 1000u);
  EXPECT_EQ(longer.header_size, 28u + 24);
}

TEST(PlanCall, counts_the_chunks_for_the_Reply_in_the_Call_header) {
  // 996 bytes fit behind 28; with a Reply chunk in the header they do not.
  EXPECT_EQ(plan(shape(996), bound(5000), limits_of(1024)).form, Form::Long);
  EXPECT_EQ(plan(shape(996 - 20), bound(5000), limits_of(1024)).form, Form::Inline);
}

TEST(PlanCall, leaves_eligible_arguments_inline_when_all_fits) {
  const CallPlan made = plan(shape(120 + 800, {item(112, 800)}), bound(100), limits_of(1024));
  EXPECT_EQ(made.form, Form::Inline);
  EXPECT_TRUE(made.reduced.empty());
}

TEST(PlanCall, reduces_a_large_eligible_argument_with_its_pad) {
  PROVES("R8166-3.4.4.1-b", "R8166-3.4.4.4-b", "R8166-3.5.2-b");
  const CallPlan made = plan(shape(112 + 5004, {item(112, 5001)}), bound(100), limits_of(4096));
  EXPECT_EQ(made.form, Form::Inline);
  EXPECT_EQ(made.reduced, (Indices{0}));
  EXPECT_EQ(made.stream_length, 112u);
  EXPECT_EQ(made.header_size, 28u + 24);
}

TEST(PlanCall, counts_one_read_segment_for_each_piece_of_memory) {
  EXPECT_EQ(plan(shape(112 + 8000, {item(112, 8000, 3)}), bound(100), limits_of(1024)).header_size,
            28u + 3 * 24);
  EXPECT_EQ(plan(shape(8000, {}, 5), bound(100), limits_of(1024)).header_size, 28u + 5 * 24);
}

TEST(PlanCall, puts_what_is_not_eligible_into_a_Position_Zero_chunk_only) {
  const CallPlan made = plan(shape(70000), bound(100), limits_of(4096));
  EXPECT_EQ(made.form, Form::Long);
  EXPECT_TRUE(made.reduced.empty());
  EXPECT_EQ(made.stream_length, 70000u);
}

TEST(PlanCall, reduces_the_largest_arguments_first_and_no_more_than_needed) {
  PROVES("R8166-3.5.2-a");
  const PeerQuirks none = PeerQuirks::none();
  const CallShape call =
      shape(200 + 600 + 4000 + 3000, {item(112, 600), item(716, 4000), item(4720, 3000)});
  EXPECT_EQ(plan(call, bound(100), limits_of(4096, none)).reduced, (Indices{1}));
  EXPECT_EQ(plan(call, bound(100), limits_of(1024, none)).reduced, (Indices{1, 2}));
  EXPECT_EQ(plan(call, bound(100), limits_of(1024, none)).stream_length, 800u);
  // Sorted by place, not by size.
  const CallShape reversed = shape(200 + 3000 + 4000, {item(112, 3000), item(3200, 4000)});
  EXPECT_EQ(plan(reversed, bound(100), limits_of(1024, none)).reduced, (Indices{0, 1}));
}

TEST(PlanCall, gains_nothing_by_reducing_a_tiny_argument) {
  const CallShape call = shape(1000 + 24, {item(112, 24), item(200, 5)});
  const CallPlan made = plan(call, bound(100), limits_of(1024, PeerQuirks::none()));
  EXPECT_EQ(made.form, Form::Long);
  EXPECT_TRUE(made.reduced.empty());
}

TEST(PlanCall, offers_peers_with_quirks_one_data_chunk_or_Position_Zero_but_never_both) {
  const CallShape two = shape(200 + 4000 + 4000, {item(112, 4000), item(4120, 4000)});
  const CallPlan made = plan(two, bound(100), limits_of(4096));
  EXPECT_EQ(made.form, Form::Long);
  EXPECT_TRUE(made.reduced.empty());
  EXPECT_EQ(made.stream_length, 8200u);
  const CallPlan one = plan(two, bound(100), limits_of(6000));
  EXPECT_EQ(one.form, Form::Inline);
  EXPECT_EQ(one.reduced, (Indices{0}));
}

TEST(PlanCall, combines_Position_Zero_with_data_chunks_where_the_peer_can) {
  PROVES("R8166-3.5.3-k");
  const CallShape call = shape(5000 + 9000, {item(112, 9000)}, 2);
  const CallPlan made = plan(call, bound(100), limits_of(1024, PeerQuirks::none()));
  EXPECT_EQ(made.form, Form::Long);
  EXPECT_EQ(made.reduced, (Indices{0}));
  EXPECT_EQ(made.stream_length, 5000u);
  EXPECT_EQ(made.header_size, 28u + 24 + 3 * 24);
}

TEST(PlanCall, falls_back_to_Position_Zero_alone_when_the_header_has_no_room) {
  Items items;
  for (std::uint32_t i = 0; i < 60; ++i) items.push_back(item(112 + i * 2000, 1900));
  const CallPlan made = plan(shape(120000, items), bound(100), limits_of(1024, PeerQuirks::none()));
  EXPECT_EQ(made.form, Form::Long);
  EXPECT_TRUE(made.reduced.empty());
  EXPECT_EQ(made.header_size, 28u + 24);
}

TEST(PlanCall, fails_when_memory_is_in_more_pieces_than_a_chunk_takes) {
  const CallLimits limits = limits_of(1024);
  EXPECT_EQ(try_plan(shape(8000, {}, 17), bound(0), limits).error(), Reason::RdmaSegmentsTooMany);
  EXPECT_TRUE(try_plan(shape(8000, {}, 16), bound(0), limits).ok());
  ReplyBound reply = bound(8000);
  reply.segments = 17;
  EXPECT_EQ(try_plan(shape(100), reply, limits).error(), Reason::RdmaSegmentsTooMany);
  reply = bound(100, {8000});
  reply.results[0].segments = 17;
  EXPECT_EQ(try_plan(shape(100), reply, limits).error(), Reason::RdmaSegmentsTooMany);
}

TEST(PlanCall, offers_of_a_Reply_chunk_no_more_than_can_be_offered) {
  ReplyBound reply = bound(8000);
  reply.reply_chunk_max = 5000;
  EXPECT_EQ(plan(shape(100), reply, limits_of(1024)).reply_chunk, 5000u);
}

TEST(PlanCall, fails_when_the_header_alone_exceeds_the_threshold) {
  ReplyBound reply = bound(100);
  for (int i = 0; i < 16; ++i) {
    ResultBound result;
    result.max_length = 8000;
    result.segments = 16;
    reply.results.push_back(result);
  }
  EXPECT_EQ(try_plan(shape(2000), reply, limits_of(1024)).error(), Reason::RdmaCallTooLarge);
}

TEST(PlanCall, offers_a_Reply_chunk_exactly_when_the_largest_Reply_exceeds_the_threshold) {
  PROVES("R8166-4.3.3-a", "R8166-3.5.3-e");
  EXPECT_EQ(plan(shape(100), bound(4096 - 28), limits_of(4096)).reply_chunk, 0u);
  EXPECT_EQ(plan(shape(100), bound(4096 - 24), limits_of(4096)).reply_chunk, 4096u - 24);
  // The pad of what may come inline counts.
  EXPECT_FALSE(plan(shape(100), bound(4096 - 28 - 1000, {1000}), limits_of(4096)).needs_memory());
  EXPECT_TRUE(plan(shape(100), bound(4096 - 28 - 1000, {997}), limits_of(4093)).needs_memory());
  ReplyBound wanted = bound(100, {4096, 4096});
  wanted.results[0].wanted_inline = true;
  EXPECT_EQ(plan(shape(100), wanted, limits_of(4096)).reply_chunk, 100u + 4096);
}

TEST(PlanCall, keeps_the_two_thresholds_apart) {
  CallLimits limits = limits_of(1024);
  limits.reply_threshold = 8192;
  EXPECT_EQ(plan(shape(2000), bound(4000), limits).form, Form::Long);
  EXPECT_EQ(plan(shape(2000), bound(4000), limits).reply_chunk, 0u);
  limits = {.call_threshold = 8192, .reply_threshold = 1024, .quirks = {}};
  EXPECT_EQ(plan(shape(2000), bound(4000), limits).form, Form::Inline);
  EXPECT_EQ(plan(shape(2000), bound(4000), limits).reply_chunk, 4000u);
}

TEST(PlanCall, offers_one_Write_chunk_of_the_largest_size_for_each_eligible_result) {
  PROVES("R8166-3.4.6-b", "R8166-4.3.2.1-a", "R8166-3.4.6.2-a", "R8166-4.3.3-b");
  const CallPlan read = plan(shape(140), bound(128, {65537}), limits_of(4096));
  EXPECT_EQ(read.write_chunks, (Indices{65537}));
  EXPECT_EQ(read.reply_chunk, 0u);
  EXPECT_EQ(read.header_size, 28u + 8 + 16);
}

TEST(PlanCall, makes_room_in_each_Write_chunk_for_every_result_that_may_shift_into_it) {
  PROVES("R8166-4.3.2.2-b");
  ReplyBound reply = bound(128, {4096, 65536, 5});
  reply.results[1].segments = 3;
  const CallPlan shift = plan(shape(140), reply, limits_of(4096));
  EXPECT_EQ(shift.write_chunks, (Indices{65536, 65536, 5}));
  EXPECT_EQ(shift.header_size, 28u + 3 * 8 + (3 + 3 + 1) * 16);
  reply.pairing = Pairing::ByIndex;
  EXPECT_EQ(plan(shape(140), reply, limits_of(4096)).write_chunks, (Indices{4096, 65536, 5}));
}

TEST(PlanCall, lets_small_eligible_results_come_inline) {
  PROVES("R8166-4.3.2.3-a");
  EXPECT_FALSE(plan(shape(140), bound(128, {512}), limits_of(1024)).needs_memory());
  ReplyBound wanted = bound(128, {2000});
  wanted.results[0].wanted_inline = true;
  const CallPlan made = plan(shape(140), wanted, limits_of(4096));
  EXPECT_TRUE(made.write_chunks.empty());
  EXPECT_EQ(made.reply_chunk, 0u);
  const CallPlan longer = plan(shape(140), wanted, limits_of(1024));
  EXPECT_TRUE(longer.write_chunks.empty()) << "also when it comes by a Reply chunk then";
  EXPECT_EQ(longer.reply_chunk, 128u + 2000);
}

TEST(PlanCall, asks_for_one_of_several_results_inline_with_an_empty_chunk) {
  PROVES("R8166-4.3.2.3-b");
  ReplyBound reply = bound(128, {8000, 100, 8000});
  reply.results[1].wanted_inline = true;
  reply.pairing = Pairing::ByIndex;
  const CallPlan made = plan(shape(140), reply, limits_of(1024));
  EXPECT_EQ(made.write_chunks, (Indices{8000, 0, 8000}));
  EXPECT_EQ(made.header_size, 28u + 24 + 8 + 24);
  EXPECT_EQ(made.reply_chunk, 0u);
  // Where results shift, the last one may come to the empty chunk, and so inline.
  reply.pairing = Pairing::Shift;
  EXPECT_EQ(plan(shape(140), reply, limits_of(1024)).reply_chunk, 128u + 8000);
}

TEST(PlanCall, is_ready_for_a_Long_Reply_when_results_wanted_inline_need_one) {
  PROVES("R8166-4.3.2.3-e");
  ReplyBound reply = bound(128, {8190});
  reply.results[0].wanted_inline = true;
  const CallPlan made = plan(shape(140), reply, limits_of(1024));
  EXPECT_TRUE(made.write_chunks.empty());
  EXPECT_EQ(made.reply_chunk, 128u + 8192);
}

TEST(PlanCall, counts_the_returned_Write_list_before_it_does_without_a_Reply_chunk) {
  PROVES("R8166-4.3.3-a");
  // 28 + 980 fits, but the Reply repeats the Write list: 24 bytes more do not.
  const CallPlan made = plan(shape(140), bound(980, {8000}), limits_of(1024));
  EXPECT_EQ(made.write_chunks, (Indices{8000}));
  EXPECT_EQ(made.reply_chunk, 980u);
  EXPECT_EQ(plan(shape(140), bound(972, {8000}), limits_of(1024)).reply_chunk, 0u);
}

TEST(PlanCall, offers_a_Reply_chunk_for_everything_where_the_peer_cannot_use_both) {
  PeerQuirks quirks;
  quirks.no_write_list_with_reply_chunk = true;
  const CallPlan made = plan(shape(140), bound(5000, {8001}), limits_of(4096, quirks));
  EXPECT_TRUE(made.write_chunks.empty());
  EXPECT_EQ(made.reply_chunk, 5000u + 8004);
  EXPECT_EQ(plan(shape(140), bound(100, {8001}), limits_of(4096, quirks)).write_chunks,
            (Indices{8001}));
}

TEST(PlanCall, fails_when_the_largest_Reply_exceeds_32_bits) {
  ReplyBound reply = bound(0xffffff00, {0x200});
  EXPECT_EQ(plan(shape(140), reply, limits_of(1024)).reply_chunk, 0xffffff00u);
  reply.results[0].wanted_inline = true;
  EXPECT_EQ(try_plan(shape(140), reply, limits_of(1024)).error(), Reason::RdmaCallTooLarge);
}

}  // namespace
}  // namespace stag::rpcrdma
