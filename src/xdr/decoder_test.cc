#include "xdr/decoder.h"

#include <gtest/gtest.h>

#include <map>

#include "testing/proves.h"
#include "xdr/container.h"

namespace stag::xdr {
namespace {

Buffer words(std::initializer_list<std::uint32_t> values) {
  Encoder encoder;
  for (const std::uint32_t value : values) encoder.u32(value);
  return std::move(encoder).finish().rope().flatten();
}

Buffer text(std::string_view bytes) {
  return Buffer::copy_of(bytes_of(bytes));
}

TEST(Decoder, reads_what_the_encoder_wrote) {
  Encoder encoder;
  encoder.i32(-7);
  encoder.u64(1ull << 63);
  encoder.i64(-9);
  encoder.boolean(true);
  encoder.f32(0.25f);
  encoder.f64(-1e300);
  encoder.fixed_opaque(bytes_of("12345"));
  encoder.string(kNoItem, "hello");
  encoder.opaque(kNoItem, Rope::copy_of(bytes_of("opaque")));
  Decoder decoder(std::move(encoder).finish().rope().flatten());
  std::int32_t i32 = 0;
  std::uint64_t u64 = 0;
  std::int64_t i64 = 0;
  bool boolean = false;
  float f32 = 0;
  double f64 = 0;
  std::array<std::byte, 5> fixed{};
  std::string string;
  Rope opaque;
  ASSERT_TRUE(decoder.i32(i32) && decoder.u64(u64) && decoder.i64(i64) &&
              decoder.boolean(boolean) && decoder.f32(f32) && decoder.f64(f64));
  ASSERT_TRUE(decoder.fixed_opaque(fixed) && decoder.string(kNoItem, string) &&
              decoder.opaque(kNoItem, opaque));
  EXPECT_TRUE(decoder.finish().ok());
  EXPECT_EQ(i32, -7);
  EXPECT_EQ(u64, 1ull << 63);
  EXPECT_EQ(i64, -9);
  EXPECT_TRUE(boolean);
  EXPECT_EQ(f32, 0.25f);
  EXPECT_EQ(f64, -1e300);
  EXPECT_EQ(text_of(fixed), "12345");
  EXPECT_EQ(string, "hello");
  EXPECT_EQ(opaque, Rope::copy_of(bytes_of("opaque")));
}

TEST(Decoder, gives_opaques_as_slices_that_keep_the_payload_alive) {
  Buffer payload = text(std::string_view("\0\0\0\4data", 8));
  const std::byte* where = payload.data() + 4;
  Rope opaque;
  {
    Decoder decoder(std::move(payload));
    ASSERT_TRUE(decoder.opaque(kNoItem, opaque));
  }
  EXPECT_EQ(opaque.pieces().front().data(), where);
  EXPECT_TRUE(opaque.pieces().front().owned());
  EXPECT_EQ(text_of(opaque.flatten().bytes()), "data");
}

// Memory for the first item.
struct Placing final : ItemSource {
  std::optional<Rope> take(ItemId, std::uint32_t, std::uint32_t) override { return std::nullopt; }
  MutableBytes place(std::uint32_t length) override {
    return std::exchange(used, true) ? MutableBytes() : MutableBytes(memory).first(length);
  }
  std::array<std::byte, 8> memory{};
  bool used = false;
};

TEST(Decoder, copies_opaques_of_a_borrowed_payload_to_where_they_are_wanted) {
  const std::string_view payload("\0\0\0\4data\0\0\0\4more", 16);
  Placing items;
  Decoder decoder(Buffer::borrow(bytes_of(payload)), &items);
  Rope first, second;
  ASSERT_TRUE(decoder.opaque(kNoItem, first) && decoder.opaque(kNoItem, second));
  EXPECT_EQ(first.pieces().front().data(), items.memory.data());
  EXPECT_EQ(text_of(Bytes(items.memory).first(4)), "data");
  EXPECT_TRUE(second.pieces().front().owned());
  EXPECT_EQ(text_of(second.flatten().bytes()), "more");
}

TEST(Decoder, fails_at_every_cut_and_stays_failed) {
  Encoder encoder;
  encoder.u32(1);
  encoder.u64(2);
  encoder.string(kNoItem, "abcde");
  const Buffer whole = std::move(encoder).finish().rope().flatten();
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    Decoder decoder(whole.slice(0, cut));
    std::uint32_t a = 0;
    std::uint64_t b = 0;
    std::string c;
    EXPECT_FALSE(decoder.u32(a) && decoder.u64(b) && decoder.string(kNoItem, c)) << cut;
    EXPECT_EQ(decoder.error(), Error::Truncated);
    EXPECT_FALSE(decoder.u32(a));
    EXPECT_FALSE(decoder.finish().ok());
  }
}

TEST(Decoder, refuses_booleans_above_one_and_trailing_bytes) {
  bool value = false;
  Decoder two(words({2}));
  EXPECT_FALSE(two.boolean(value));
  EXPECT_EQ(two.error(), Error::BadBoolean);
  Decoder longer(words({1, 1}));
  EXPECT_TRUE(longer.boolean(value));
  EXPECT_EQ(longer.finish().error(), Error::TrailingBytes);
}

TEST(Decoder, refuses_lengths_above_the_bound_and_beyond_the_stream) {
  Rope opaque;
  Decoder bounded(text(std::string_view("\0\0\0\5abcde\0\0\0", 12)));
  EXPECT_FALSE(bounded.opaque(kNoItem, opaque, 4));
  EXPECT_EQ(bounded.error(), Error::TooLong);
  Decoder huge(words({0xffffffff, 0}));
  EXPECT_FALSE(huge.opaque(kNoItem, opaque));
  EXPECT_EQ(huge.error(), Error::Truncated);
  BoundedOpaque<8> small;
  Decoder over(words({9, 0, 0, 0}));
  EXPECT_FALSE(decode_bounded(over, small));
  EXPECT_EQ(over.error(), Error::TooLong);
}

TEST(Decoder, accepts_any_padding_and_never_shows_it) {
  PROVES("R8166-2.2.4.2-b");
  const std::string_view padded("\0\0\0\5abcde\xff\xff\xff", 12);
  Rope opaque;
  Decoder decoder(text(padded));
  EXPECT_TRUE(decoder.opaque(kNoItem, opaque));
  EXPECT_EQ(text_of(opaque.flatten().bytes()), "abcde");
  EXPECT_TRUE(decoder.finish().ok());
  std::string string;
  Decoder of_string(text(padded));
  EXPECT_TRUE(of_string.string(kNoItem, string));
  EXPECT_EQ(string, "abcde");
  EXPECT_TRUE(of_string.finish().ok());
}

constexpr auto kWord = [](Decoder& decoder, std::uint32_t& to) { return decoder.u32(to); };
constexpr auto kNothing = [](Decoder&, std::uint32_t&) { return true; };

TEST(Decoder, refuses_a_count_that_the_stream_cannot_hold_before_it_allocates) {
  std::vector<std::uint32_t> values;
  Decoder decoder(words({0xffffffff, 1, 2}));
  EXPECT_FALSE(decode_vector(decoder, values, kUnbounded, 4, kWord));
  EXPECT_EQ(decoder.error(), Error::Truncated);
  EXPECT_EQ(values.capacity(), 0u);
  Decoder bounded(words({3, 1, 2, 3}));
  EXPECT_FALSE(decode_vector(bounded, values, 2, 4, kWord));
  EXPECT_EQ(bounded.error(), Error::TooLong);
}

TEST(Decoder, caps_elements_that_take_no_bytes) {
  std::vector<std::uint32_t> values;
  Decoder decoder(words({1'000'000}));
  EXPECT_FALSE(decode_vector(decoder, values, kUnbounded, 0, kNothing));
  EXPECT_EQ(decoder.error(), Error::TooLarge);
  Decoder few(words({1000}));
  EXPECT_TRUE(decode_vector(few, values, kUnbounded, 0, kNothing));
}

struct Wide {
  std::array<std::uint64_t, 1024> data;
};

TEST(Decoder, bounds_the_memory_of_a_value_by_the_size_of_its_stream) {
  std::vector<Wide> values;
  const Buffer payload = Buffer::copy_of(std::vector<std::byte>(1 << 16));
  Encoder encoder;
  encoder.u32(10'000);
  encoder.fixed_opaque(payload.bytes());
  Decoder decoder(std::move(encoder).finish().rope().flatten());
  const auto one = [](Decoder& from, Wide& to) {
    std::uint32_t word = 0;
    to.data[0] = 1;
    return from.u32(word);
  };
  EXPECT_FALSE(decode_vector(decoder, values, kUnbounded, 4, one));
  EXPECT_EQ(decoder.error(), Error::TooLarge);
  EXPECT_LE(values.size() * sizeof(Wide), (256u << 10) + 33 * payload.size());
}

TEST(Decoder, counts_depth_only_while_inside) {
  Limits limits;
  limits.depth = 2;
  Decoder decoder(Buffer(), nullptr, limits);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(decoder.enter());
    decoder.leave();
  }
  EXPECT_TRUE(decoder.enter() && decoder.enter());
  EXPECT_FALSE(decoder.enter());
  EXPECT_EQ(decoder.error(), Error::TooDeep);
}

// Items by position, as chunks of a message would hold them.
class Chunks final : public ItemSource {
 public:
  std::map<std::uint32_t, Rope> chunks;
  bool broken = false;

  std::optional<Rope> take(ItemId, std::uint32_t position, std::uint32_t) override {
    const auto at = chunks.find(position);
    if (at == chunks.end()) return std::nullopt;
    return at->second;
  }
  std::optional<Rope> take_body(ItemId id, std::uint32_t position) override {
    return take(id, position, 0);
  }
  bool failed() const override { return broken; }
};

TEST(Decoder, finds_reduced_items_by_their_position_in_the_unreduced_stream) {
  PROVES("R8166-3.4.5.1-a");
  static constexpr std::array<ItemId, 2> kWatched = {1, 2};
  Encoder encoder(kWatched);
  encoder.u32(1);
  encoder.opaque(1, Rope::copy_of(bytes_of("first")));
  encoder.string(2, "second!");
  encoder.u32(2);
  const Stream stream = std::move(encoder).finish();
  const std::vector<std::uint32_t> both = {0, 1};
  Chunks chunks;
  for (const std::uint32_t i : both)
    chunks.chunks[stream.items()[i].position] = stream.item_bytes(i);
  Decoder decoder(stream.without(both).flatten(), &chunks);
  std::uint32_t a = 0, b = 0;
  Rope first;
  std::string second;
  ASSERT_TRUE(decoder.u32(a) && decoder.opaque(1, first) && decoder.string(2, second) &&
              decoder.u32(b));
  EXPECT_EQ(decoder.position(), stream.size());
  EXPECT_TRUE(decoder.finish().ok());
  EXPECT_EQ(text_of(first.flatten().bytes()), "first");
  EXPECT_EQ(second, "second!");
  EXPECT_EQ(b, 2u);
}

TEST(Decoder, refuses_a_reduced_item_of_another_length) {
  Chunks chunks;
  chunks.chunks[4] = Rope::copy_of(bytes_of("four"));
  Rope bytes;
  Decoder decoder(words({5}), &chunks);
  EXPECT_FALSE(decoder.opaque(1, bytes));
  EXPECT_EQ(decoder.error(), Error::ItemMismatch);
  Chunks broken;
  broken.broken = true;
  Decoder other(words({0}), &broken);
  EXPECT_FALSE(other.opaque(1, bytes));
  EXPECT_EQ(other.error(), Error::ItemMismatch);
}

TEST(Decoder, finds_nothing_else_moved_inside_of_what_has_moved) {
  constexpr auto kOpaque = [](Decoder& decoder, Rope& to) { return decoder.opaque(2, to); };
  Chunks chunks;
  // The body of an array of one opaque, whose bytes seem to be in a chunk of their own.
  chunks.chunks[4] = Rope(words({4}));
  std::vector<Rope> values;
  Decoder decoder(words({1}), &chunks);
  EXPECT_FALSE(decode_vector(decoder, 1, values, kUnbounded, 4, kOpaque));
  EXPECT_EQ(decoder.error(), Error::Truncated);
  chunks.chunks[4].append(text("four"));
  Decoder complete(words({1}), &chunks);
  ASSERT_TRUE(decode_vector(complete, 1, values, kUnbounded, 4, kOpaque));
  EXPECT_EQ(complete.position(), 12u);
  EXPECT_TRUE(complete.finish().ok());
}

TEST(Box, copies_deeply_and_compares_by_value) {
  Box<std::vector<int>> a(std::vector<int>{1, 2});
  Box<std::vector<int>> b = a;
  EXPECT_EQ(a, b);
  b->push_back(3);
  EXPECT_NE(a, b);
  EXPECT_EQ(a->size(), 2u);
  b.reset();
  EXPECT_NE(a, b);
  EXPECT_EQ(b, (Box<std::vector<int>>(std::nullopt)));
}

TEST(BoundedOpaque, holds_what_fits_and_refuses_the_rest) {
  BoundedOpaque<4> handle(bytes_of("abc"));
  EXPECT_FALSE(handle.assign(bytes_of("abcde")));
  EXPECT_EQ(text_of(handle.bytes()), "abc");
  EXPECT_EQ(handle, BoundedOpaque<4>(bytes_of("abc")));
  EXPECT_NE(handle, BoundedOpaque<4>(bytes_of("abd")));
  EXPECT_LT(handle, BoundedOpaque<4>(bytes_of("abd")));
  EXPECT_EQ(OpaqueHash{}(handle), OpaqueHash{}(BoundedOpaque<4>(bytes_of("abc"))));
}

}  // namespace
}  // namespace stag::xdr
