#include "base/buffer.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/cancel.h"
#include "base/checked.h"
#include "base/inline_vector.h"
#include "base/poison.h"
#include "base/reason.h"
#include "base/rope.h"
#include "base/unique_function.h"

namespace stag {
namespace {

TEST(Buffer, slices_share_the_owner_and_outlive_the_first_reference) {
  Buffer whole = Buffer::copy_of(bytes_of("steering tag"));
  Buffer part = whole.slice(9, 3);
  whole = {};
  EXPECT_EQ(text_of(part.bytes()), "tag");
}

TEST(Buffer, knows_how_much_memory_a_slice_of_it_keeps) {
  for (const std::size_t size : {100, 5'000, 1 << 20}) {
    const Buffer whole = Block::allocate(size).freeze(size);
    EXPECT_GE(whole.block_size(), size);
    EXPECT_LT(whole.block_size(), 3 * size);
    EXPECT_EQ(whole.slice(0, 1).block_size(), whole.block_size());
  }
  EXPECT_EQ(Buffer::borrow(bytes_of("lent")).block_size(), 0u);
}

TEST(Buffer, may_be_written_again_by_its_only_holder) {
  Buffer whole = Block::allocate(8).freeze(8);
  EXPECT_EQ(whole.exclusive().data(), whole.data());
  {
    const Buffer other = whole.slice(2, 3);
    EXPECT_TRUE(whole.exclusive().empty());
  }
  EXPECT_EQ(whole.exclusive().size(), 8u);
  const std::array<std::byte, 4> lent{};
  EXPECT_TRUE(Buffer::borrow(lent).exclusive().empty());
}

TEST(Block, is_taken_again_from_the_free_list) {
  Block first = Block::allocate(1000);
  const std::byte* where = first.data();
  std::move(first).freeze(10);
  EXPECT_EQ(Block::allocate(600).data(), where);  // Both are of the 1 KiB class.
}

TEST(Block, is_given_back_on_a_thread_that_has_made_none) {
  Buffer made = Buffer::copy_of(bytes_of("made elsewhere"));
  std::thread([given = std::move(made)]() mutable { given = {}; }).join();
  EXPECT_EQ(made.size(), 0u);
}

using BlockDeathTest = ::testing::Test;

TEST_F(BlockDeathTest, is_not_read_after_its_end_where_the_address_sanitizer_looks) {
  if (!kPoisons) GTEST_SKIP() << "nobody looks";
  for (const std::size_t size : {100, 100'000}) {
    const volatile std::byte* bytes = nullptr;
    {
      const Block ended = Block::allocate(size);
      bytes = ended.data();
    }
    EXPECT_DEATH(static_cast<void>(bytes[size - 1]), "use-after-poison");
    const Block again = Block::allocate(size);
    again.data()[size - 1] = std::byte{1};
    EXPECT_EQ(again.data(), bytes);
  }
}

TEST(Block, is_empty_or_throws_when_there_is_no_memory) {
  for (const std::size_t more_than_there_is : {std::size_t{1} << 60, ~std::size_t{0}}) {
    EXPECT_FALSE(Block::try_allocate(more_than_there_is));
    EXPECT_THROW(Block::allocate(more_than_there_is), std::bad_alloc);
  }
  EXPECT_GE(Block::try_allocate(1000).capacity(), 1000u);
}

TEST(Rope, slices_across_pieces_and_flattens) {
  Rope rope;
  rope.append(Buffer::copy_of(bytes_of("read ")));
  rope.append(Buffer::copy_of(bytes_of("chunk")));
  rope.append(Buffer::copy_of(bytes_of(" list")));
  EXPECT_EQ(text_of(rope.slice(3, 9).flatten().bytes()), "d chunk l");
  EXPECT_EQ(rope.slice(5, 5).pieces().size(), 1u);
  EXPECT_EQ(rope, Rope::copy_of(bytes_of("read chunk list")));
}

TEST(Rope, moves_its_references_with_its_bytes) {
  Buffer kept = Buffer::copy_of(bytes_of("one"));
  {
    Rope first(kept);
    first.append(Buffer::copy_of(bytes_of(" two")));
    Rope second = std::move(first);
    EXPECT_TRUE(first.pieces().empty());
    EXPECT_TRUE(kept.exclusive().empty());
    first = std::move(second);
    EXPECT_EQ(first, Rope::copy_of(bytes_of("one two")));
  }
  EXPECT_EQ(kept.exclusive().size(), 3u);
}

TEST(InlineVector, keeps_its_elements_when_it_grows_and_moves) {
  InlineVector<std::string, 2> values{"one", "two"};
  values.push_back(values[0]);
  InlineVector<std::string, 2> moved = std::move(values);
  EXPECT_EQ(moved, (InlineVector<std::string, 2>{"one", "two", "one"}));
  EXPECT_TRUE(values.empty());
  values.push_back("again");
  EXPECT_EQ(values.back(), "again");
  moved = std::move(values);
  EXPECT_EQ(moved, (InlineVector<std::string, 2>{"again"}));
  moved = values;
  EXPECT_TRUE(moved.empty());
  InlineVector<int, 2> plain{1, 2, 3}, copy;
  copy = plain;
  plain = InlineVector<int, 2>{4};
  EXPECT_EQ(plain, (InlineVector<int, 2>{4}));
  std::swap(plain, copy);
  EXPECT_EQ(plain, (InlineVector<int, 2>{1, 2, 3}));
}

TEST(UniqueFunction, carries_what_cannot_be_copied_small_or_large) {
  auto small = std::make_unique<int>(4);
  UniqueFunction<int()> call = [small = std::move(small)] { return *small; };
  UniqueFunction<int()> moved = std::move(call);
  EXPECT_FALSE(call);
  EXPECT_EQ(moved(), 4);
  std::array<long, 32> large{};
  large[31] = 9;
  UniqueFunction<long()> big = [large] { return large[31]; };
  EXPECT_EQ(big(), 9);
}

TEST(Cancel, runs_each_callback_once_and_none_that_is_gone) {
  CancelSource source;
  int runs = 0;
  CancelCallback kept(source, [&] { ++runs; });
  {
    CancelCallback gone(source, [&] { runs += 100; });
  }
  source.cancel();
  source.cancel();
  EXPECT_EQ(runs, 1);
  CancelCallback late(source, [&] { ++runs; });
  EXPECT_EQ(runs, 2);
}

TEST(Checked, says_when_a_sum_no_longer_fits) {
  EXPECT_EQ(checked_add<std::uint32_t>(1, 2), 3u);
  EXPECT_EQ(checked_add<std::uint32_t>(0xffffffff, 1), std::nullopt);
  EXPECT_TRUE(range_within<std::uint64_t>(4, 4, 8));
  EXPECT_FALSE(range_within<std::uint64_t>(~0ull, 2, 8));
}

TEST(Reason, counts_every_trace) {
  const auto before = reason_counters().of(Reason::Shutdown);
  trace(Reason::Shutdown);
  EXPECT_EQ(reason_counters().of(Reason::Shutdown), before + 1);
  EXPECT_EQ(to_string(Reason::Shutdown), "Shutdown");
}

}  // namespace
}  // namespace stag
