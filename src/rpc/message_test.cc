#include "rpc/message.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/proves.h"
#include "testing/store_program.h"

namespace stag::rpc {
namespace {

using testing::store::pattern;

constexpr std::array<xdr::ItemId, 2> kEligible{7, 8};

ReducedItems reduced() {
  ReducedItems items;
  items.allow(kEligible);
  return items;
}

TEST(ReducedItems, gives_a_read_chunk_to_the_item_at_its_position_only) {
  ReducedItems items = reduced();
  items.add(100, pattern(5, 1));
  EXPECT_FALSE(items.take(7, 96, 5).has_value());
  EXPECT_FALSE(items.all_taken());
  auto bytes = items.take(7, 100, 5);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(*bytes, pattern(5, 1));
  EXPECT_TRUE(items.all_taken());
  EXPECT_FALSE(items.failed());
}

TEST(ReducedItems, accepts_a_read_chunk_with_the_pad_of_its_item_and_leaves_the_pad_out) {
  PROVES("R8166-3.4.5.2-f");
  for (std::uint32_t chunk : {5u, 8u}) {
    ReducedItems items = reduced();
    items.add(100, pattern(chunk, 1));
    auto bytes = items.take(7, 100, 5);
    ASSERT_TRUE(bytes.has_value()) << chunk;
    EXPECT_EQ(*bytes, pattern(8, 1).slice(0, 5));
  }
}

TEST(ReducedItems, gives_the_kth_item_of_a_name_its_kth_sink_however_the_others_came) {
  std::array<std::byte, 8> first{}, second{}, other{};
  const std::array<ResultBuffer, 3> result_buffers{ResultBuffer{7, first}, ResultBuffer{8, other},
                                                   ResultBuffer{7, second}};
  ReducedItems items = reduced();
  items.place_in(result_buffers);
  items.add_written(pattern(5, 1));
  EXPECT_TRUE(items.take(7, 100, 5).has_value());
  EXPECT_FALSE(items.take(7, 200, 5).has_value());
  EXPECT_EQ(items.place(5).data(), second.data());
  EXPECT_EQ(items.place(5).size(), 5u);
  EXPECT_TRUE(items.place(9).empty());
  EXPECT_FALSE(items.take(7, 300, 5).has_value());
  EXPECT_TRUE(items.place(5).empty());
}

TEST(ReducedItems, fails_on_a_read_chunk_of_another_length) {
  for (std::uint32_t length : {4u, 6u, 7u, 9u}) {
    ReducedItems items = reduced();
    items.add(100, pattern(length, 1));
    EXPECT_FALSE(items.take(7, 100, 5).has_value());
    EXPECT_TRUE(items.failed()) << length;
  }
}

TEST(ReducedItems, fails_on_a_read_chunk_for_an_item_that_is_not_eligible) {
  ReducedItems items = reduced();
  items.add(100, pattern(8, 1));
  EXPECT_FALSE(items.take(1, 100, 8).has_value());
  EXPECT_TRUE(items.failed());
}

TEST(ReducedItems, pairs_write_chunks_with_eligible_items_in_order) {
  ReducedItems items = reduced();
  items.add_written(pattern(4, 1));
  items.add_written(pattern(6, 2));
  EXPECT_FALSE(items.take(1, 50, 4).has_value()) << "not eligible: stays inline, takes no chunk";
  EXPECT_EQ(*items.take(8, 60, 4), pattern(4, 1));
  EXPECT_EQ(*items.take(7, 80, 6), pattern(6, 2));
  EXPECT_FALSE(items.take(7, 99, 6).has_value());
  EXPECT_FALSE(items.failed());
}

TEST(ReducedItems, lets_an_item_of_no_length_consume_its_chunk) {
  ReducedItems items = reduced();
  items.add_written(Rope());
  items.add_written(pattern(4, 3));
  EXPECT_EQ(*items.take(7, 60, 0), Rope());
  EXPECT_EQ(*items.take(7, 80, 4), pattern(4, 3));
  EXPECT_FALSE(items.failed());
}

TEST(ReducedItems, leaves_an_item_inline_whose_chunk_was_offered_empty) {
  ReducedItems items = reduced();
  items.add_inline();
  items.add_written(pattern(4, 3));
  EXPECT_FALSE(items.take(7, 60, 9).has_value());
  EXPECT_EQ(*items.take(7, 80, 4), pattern(4, 3)) << "the empty chunk was consumed";
  EXPECT_FALSE(items.failed());
}

TEST(ReducedItems, keeps_a_chunk_for_its_own_item_when_paired_by_index) {
  ReducedItems items = reduced();
  items.add_written(Rope(), 7);
  items.add_written(pattern(6, 2), 8);
  EXPECT_EQ(*items.take(8, 60, 6), pattern(6, 2)) << "the result before it is absent";
  EXPECT_FALSE(items.take(7, 80, 0).has_value()) << "its place has passed";
  EXPECT_FALSE(items.failed());
}

TEST(ReducedItems, fails_when_an_item_stayed_inline_or_came_short_although_it_had_a_chunk) {
  for (std::uint32_t written : {0u, 4u, 12u}) {
    ReducedItems items = reduced();
    items.add_written(pattern(written, 1));
    EXPECT_FALSE(items.take(7, 60, 8).has_value());
    EXPECT_TRUE(items.failed()) << written;
  }
}

TEST(ReplyBound, adds_data_and_pad_of_its_items_without_overflow) {
  ReplyBound bound;
  bound.payload_max = 100;
  bound.items.push_back({1, 5});
  bound.items.push_back({2, 0xffffffff});
  EXPECT_EQ(bound.total_max(), 100 + 8 + 0x100000000ull);
}

TEST(ReducedItems, leave_the_chunk_of_an_absent_item_alone_where_each_has_its_own) {
  ReducedItems by_index = reduced();
  by_index.add_written(Rope(), 7);
  by_index.add_written(pattern(5, 1), 7);
  by_index.absent(7);
  EXPECT_EQ(by_index.take(7, 100, 5), pattern(5, 1));
  ReducedItems shifting = reduced();
  shifting.add_written(pattern(5, 1));
  shifting.absent(7);
  EXPECT_EQ(shifting.take(7, 100, 5), pattern(5, 1));
}

TEST(ReducedItems, give_bodies_of_any_length_to_what_is_eligible_only) {
  PROVES("R8166-6.1-c");
  ReducedItems items = reduced();
  items.add(100, pattern(12, 1));
  items.add_written(pattern(8, 2));
  EXPECT_EQ(items.take_body(7, 100), pattern(12, 1));
  EXPECT_EQ(items.take_body(8, 200), pattern(8, 2));
  EXPECT_FALSE(items.take_body(8, 300).has_value());
  EXPECT_FALSE(items.failed());
  ReducedItems refused = reduced();
  refused.add(100, pattern(12, 1));
  EXPECT_FALSE(refused.take_body(1, 100).has_value());
  EXPECT_TRUE(refused.failed());
}

}  // namespace
}  // namespace stag::rpc
