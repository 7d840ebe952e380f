#include "xdr/encoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/proves.h"

namespace stag::xdr {
namespace {

std::string hex(const Rope& rope) {
  std::string text;
  const Buffer flat = rope.flatten();
  for (const std::byte byte : flat.bytes()) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
    if (text.size() % 9 == 8) text += ' ';
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

template <class Write>
std::string encoded(Write write) {
  Encoder encoder;
  write(encoder);
  return hex(std::move(encoder).finish().rope());
}

Rope filled(std::size_t length, char with) {
  return Rope::copy_of(bytes_of(std::string(length, with)));
}

TEST(Encoder, writes_integers_as_RFC_4506_4_1_to_4_5) {
  EXPECT_EQ(encoded([](Encoder& e) { e.i32(-2); }), "fffffffe");
  EXPECT_EQ(encoded([](Encoder& e) { e.u32(0x80000001); }), "80000001");
  EXPECT_EQ(encoded([](Encoder& e) { e.boolean(true); }), "00000001");
  EXPECT_EQ(encoded([](Encoder& e) { e.i64(-2); }), "ffffffff fffffffe");
  EXPECT_EQ(encoded([](Encoder& e) { e.u64(0x0102030405060708); }), "01020304 05060708");
}

TEST(Encoder, writes_floating_point_as_RFC_4506_4_6_and_4_7) {
  EXPECT_EQ(encoded([](Encoder& e) { e.f32(-1.5f); }), "bfc00000");
  EXPECT_EQ(encoded([](Encoder& e) { e.f64(0.1); }), "3fb99999 9999999a");
}

TEST(Encoder, pads_opaques_and_strings_with_zeros_as_RFC_4506_4_9_to_4_11) {
  PROVES("R8166-2.2.4.2-a");
  EXPECT_EQ(encoded([](Encoder& e) { e.fixed_opaque(bytes_of("abcde")); }), "61626364 65000000");
  EXPECT_EQ(encoded([](Encoder& e) { e.opaque(kNoItem, bytes_of("ab")); }), "00000002 61620000");
  EXPECT_EQ(encoded([](Encoder& e) { e.string(kNoItem, "abcd"); }), "00000004 61626364");
  EXPECT_EQ(encoded([](Encoder& e) { e.string(kNoItem, ""); }), "00000000");
  EXPECT_EQ(encoded([](Encoder& e) { e.string(kNoItem, "a"); }), "00000001 61000000");
  EXPECT_EQ(encoded([](Encoder& e) { e.string(kNoItem, "abc"); }), "00000003 61626300");
  EXPECT_EQ(encoded([](Encoder& e) { e.string(kNoItem, "abcde"); }), "00000005 61626364 65000000");
}

TEST(Encoder, writes_the_file_of_RFC_4506_section_7) {
  Encoder encoder;
  encoder.string(kNoItem, "sillyprog");
  encoder.i32(2);
  encoder.string(kNoItem, "lisp");
  encoder.string(kNoItem, "john");
  encoder.opaque(kNoItem, bytes_of("(quit)"));
  EXPECT_EQ(hex(std::move(encoder).finish().rope()),
            "00000009 73696c6c 7970726f 67000000 00000002 00000004 6c697370 00000004 6a6f686e "
            "00000006 28717569 74290000");
}

TEST(Encoder, references_big_opaques_and_never_copies_them) {
  const Rope big = filled(8193, 'b');
  Encoder encoder;
  encoder.u32(7);
  encoder.opaque(kNoItem, big);
  encoder.u32(9);
  const Stream stream = std::move(encoder).finish();
  ASSERT_EQ(stream.items().size(), 1u);
  const Item& item = stream.items()[0];
  EXPECT_EQ(item.id, kNoItem);
  EXPECT_EQ(item.position, 8u);
  EXPECT_EQ(item.length, 8193u);
  EXPECT_EQ(item.bytes.pieces().front().data(), big.pieces().front().data());
  EXPECT_EQ(stream.size(), 4u + 4 + 8196 + 4);
  EXPECT_EQ(stream.head().size(), 4u + 4 + 3 + 4);
  EXPECT_EQ(stream.rope().size(), stream.size());
  EXPECT_EQ(stream.rope().pieces().size(), 3u);
  EXPECT_EQ(hex(stream.rope().slice(8 + 8192, 8)), "62000000 00000009");
}

TEST(Encoder, lists_watched_items_even_when_small_and_only_those) {
  constexpr std::array<ItemId, 2> kWatched = {3, 5};
  Encoder encoder(kWatched);
  encoder.string(3, "path");
  encoder.string(4, "name");
  encoder.opaque(5, filled(6, 'x'));
  const Stream stream = std::move(encoder).finish();
  ASSERT_EQ(stream.items().size(), 2u);
  EXPECT_EQ(stream.items()[0].id, 3u);
  EXPECT_EQ(stream.items()[0].position, 4u);
  EXPECT_EQ(stream.items()[1].position, 20u);
  EXPECT_TRUE(stream.items()[1].in_head);
  EXPECT_EQ(text_of(stream.item_bytes(0).flatten().bytes()), "path");
  EXPECT_EQ(text_of(stream.item_bytes(1).flatten().bytes()), "xxxxxx");
}

TEST(Encoder, grows_its_head_and_keeps_what_was_written) {
  Encoder encoder;
  for (std::uint32_t i = 0; i < 10'000; ++i) encoder.u32(i);
  const Buffer flat = std::move(encoder).finish().rope().flatten();
  ASSERT_EQ(flat.size(), 40'000u);
  for (std::uint32_t i = 0; i < 10'000; ++i)
    ASSERT_EQ(load_be<std::uint32_t>(flat.data() + 4 * i), i);
}

TEST(Encoder, refuses_what_breaks_a_bound) {
  Encoder encoder;
  encoder.string(kNoItem, "too long", 7);
  EXPECT_EQ(encoder.error(), Error::TooLong);
  EXPECT_FALSE(std::move(encoder).finish().ok());
  Encoder counting;
  EXPECT_FALSE(counting.count(4, 3));
  EXPECT_FALSE(counting.ok());
}

TEST(Encoder, refuses_what_would_make_a_stream_of_4_GiB_whether_it_has_a_length_word_or_not) {
  const std::vector<std::byte> some(64 << 10);
  Rope most;
  for (int i = 0; i < (64 << 10) - 1; ++i) most.append(Rope::borrow(some));
  for (const bool with_word : {true, false}) {
    Encoder encoder;
    encoder.opaque(kNoItem, most);
    EXPECT_TRUE(encoder.ok());
    if (with_word)
      encoder.opaque(kNoItem, Bytes(some));
    else
      encoder.fixed_opaque(some);
    EXPECT_EQ(encoder.error(), Error::TooLong);
  }
}

// u32, "abc" watched in the head, u32, 9002 bytes watched by reference, u32, 9001 bytes unwatched,
// u32.
Stream mixed() {
  static constexpr std::array<ItemId, 2> kWatched = {1, 2};
  Encoder encoder(kWatched);
  encoder.u32(0xa);
  encoder.string(1, "abc");
  encoder.u32(0xb);
  encoder.opaque(2, filled(9002, 'B'));
  encoder.u32(0xc);
  encoder.opaque(9, filled(9001, 'C'));
  encoder.u32(0xd);
  return std::move(encoder).finish();
}

TEST(Stream, leaves_out_moved_items_with_their_padding_and_keeps_length_words) {
  PROVES("R8166-3.4.4.1-b", "R8166-3.4.4.4-b");
  const Stream stream = mixed();
  ASSERT_EQ(stream.items().size(), 3u);
  const std::vector<std::uint32_t> both = {0, 1};
  const Rope reduced = stream.without(both);
  EXPECT_EQ(reduced.size(), stream.size_without(both));
  EXPECT_EQ(reduced.size(), stream.size() - 4 - 9004);
  EXPECT_EQ(hex(reduced.slice(0, 24)), "0000000a 00000003 0000000b 0000232a 0000000c 00002329");
  EXPECT_EQ(hex(reduced.slice(24 + 9000, 8)), "43000000 0000000d");
  EXPECT_EQ(stream.item_bytes(1), filled(9002, 'B'));
  const std::vector<std::uint32_t> second = {1};
  EXPECT_EQ(hex(stream.without(second).slice(0, 20)),
            "0000000a 00000003 61626300 0000000b 0000232a");
}

TEST(Stream, gives_what_is_left_as_views_too) {
  const Stream stream = mixed();
  const std::vector<std::vector<std::uint32_t>> choices = {{}, {0}, {1}, {0, 1}};
  for (const std::vector<std::uint32_t>& moved : choices) {
    Stream::Parts parts;
    stream.add_parts_without(moved, parts);
    Rope joined;
    for (const Bytes part : parts) joined.append(Buffer::borrow(part));
    EXPECT_EQ(joined, stream.without(moved));
  }
}

TEST(Stream, positions_count_the_unreduced_stream) {
  PROVES("R8166-3.4.5-b");
  const Stream stream = mixed();
  const Buffer whole = stream.rope().flatten();
  for (std::size_t i = 0; i < stream.items().size(); ++i) {
    const Item& item = stream.items()[i];
    EXPECT_EQ(Rope(whole.slice(item.position, item.length)), stream.item_bytes(i));
    EXPECT_EQ(load_be<std::uint32_t>(whole.data() + item.position - 4), item.length);
  }
}

TEST(Stream, patches_a_word_without_changing_ropes_already_made) {
  Stream stream = mixed();
  const Rope before = stream.rope();
  stream.patch_u32(0, 0x55);
  stream.patch_u32(stream.size() - 4, 0x66);
  EXPECT_EQ(hex(before.slice(0, 4)), "0000000a");
  EXPECT_EQ(hex(stream.rope().slice(0, 4)), "00000055");
  EXPECT_EQ(hex(stream.rope().slice(stream.size() - 4, 4)), "00000066");
  EXPECT_EQ(stream.rope().slice(4, stream.size() - 8), before.slice(4, stream.size() - 8));
}

TEST(Stream, that_is_kept_refers_to_no_memory_but_that_of_its_own_bytes) {
  Buffer large = filled(1 << 20, 'x').flatten();
  Encoder encoder;
  encoder.opaque(kNoItem, Rope(large.slice(4096, 2000)));
  encoder.u32(7);
  Stream stream = std::move(encoder).finish();
  const Buffer before = stream.rope().flatten();
  EXPECT_GE(stream.block_bytes(), large.size());
  stream.unshare();
  EXPECT_FALSE(large.exclusive().empty());
  EXPECT_LE(stream.block_bytes(), 512u + 2048);
  EXPECT_EQ(stream.rope(), Rope(before));
  EXPECT_EQ(stream.size(), before.size());
}

TEST(Stream, that_is_kept_gives_back_the_room_of_what_was_taken_back) {
  Encoder encoder;
  encoder.u32(1);
  const Encoder::Mark mark = encoder.mark();
  encoder.opaque(kNoItem, bytes_of(std::string(60'000, 'x')));
  encoder.rewind(mark);
  encoder.u32(2);
  Stream stream = std::move(encoder).finish();
  EXPECT_GE(stream.block_bytes(), 60'000u);
  stream.unshare();
  EXPECT_LE(stream.block_bytes(), 512u);
  EXPECT_EQ(hex(stream.rope()), "00000001 00000002");
}

TEST(Encoder, patches_a_word_before_it_is_finished) {
  Encoder encoder;
  encoder.u32(1);
  encoder.opaque(kNoItem, filled(10000, 'x'));
  encoder.u32(2);
  encoder.patch_u32(0, 7);
  encoder.patch_u32(10008, 8);
  const Rope rope = std::move(encoder).finish().rope();
  EXPECT_EQ(hex(rope.slice(0, 4)), "00000007");
  EXPECT_EQ(hex(rope.slice(10008, 4)), "00000008");
}

TEST(Encoder, appends_a_stream_as_if_it_had_been_encoded_in_place) {
  static constexpr std::array<ItemId, 2> kWatched = {1, 2};
  Encoder encoder(kWatched);
  encoder.u64(1);
  encoder.opaque(2, filled(9000, 'A'));
  encoder.append(mixed());
  encoder.u32(0xe);
  const Stream stream = std::move(encoder).finish();
  const Rope inner = mixed().rope();
  EXPECT_EQ(stream.size(), 8u + 4 + 9000 + inner.size() + 4);
  EXPECT_EQ(stream.rope().slice(9012, inner.size()), inner);
  ASSERT_EQ(stream.items().size(), 4u);
  for (std::size_t i = 0; i < stream.items().size(); ++i)
    EXPECT_EQ(stream.rope().slice(stream.items()[i].position, stream.items()[i].length),
              stream.item_bytes(i));
}

TEST(Encoder, rewound_to_a_mark_is_as_it_was_there) {
  static constexpr std::array<ItemId, 1> kWatched = {2};
  const auto encoded = [](bool detour) {
    Encoder encoder(kWatched);
    encoder.opaque(2, filled(9000, 'A'));
    const Encoder::Mark mark = encoder.mark();
    if (detour) {
      encoder.opaque(2, filled(9000, 'B'));
      encoder.opaque(2, filled(10, 'C'), 5);
      encoder.rewind(mark);
    }
    encoder.opaque(2, filled(10, 'D'));
    return std::move(encoder).finish();
  };
  const Stream straight = encoded(false);
  const Stream rewound = encoded(true);
  EXPECT_TRUE(rewound.ok());
  EXPECT_EQ(rewound.rope(), straight.rope());
  ASSERT_EQ(rewound.items().size(), 2u);
  EXPECT_EQ(rewound.items()[1].ordinal, 1u);
  EXPECT_EQ(rewound.places(), 2u);
}

}  // namespace
}  // namespace stag::xdr
