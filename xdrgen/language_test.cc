// What the generated code of testdata/language.x does.
#include "language/language.h"

#include <gtest/gtest.h>

namespace {

using namespace language;
using stag::Buffer;
using stag::Bytes;
using stag::bytes_of;
using stag::Rope;
using stag::xdr::Decoder;
using stag::xdr::Encoder;
using stag::xdr::Error;

Buffer words(std::initializer_list<std::uint32_t> values) {
  Encoder encoder;
  for (const std::uint32_t word : values) encoder.u32(word);
  return std::move(encoder).finish().rope().flatten();
}

template <class T>
Buffer flat(const T& from) {
  return stag::xdr::encode(from).rope().flatten();
}

template <class T>
void expect_round_trip(const T& from) {
  const auto back = stag::xdr::decode<T>(flat(from));
  ASSERT_TRUE(back.ok()) << to_string(back.error());
  EXPECT_EQ(*back, from);
}

template <class T>
Error failure(Buffer payload) {
  const auto result = stag::xdr::decode<T>(std::move(payload));
  return result.ok() ? Error::None : result.error();
}

std::vector<std::uint32_t> words_of(const Buffer& buffer) {
  std::vector<std::uint32_t> result;
  for (std::size_t at = 0; at + 4 <= buffer.size(); at += 4)
    result.push_back(stag::load_be<std::uint32_t>(buffer.data() + at));
  return result;
}

using Words = std::vector<std::uint32_t>;

TEST(Generated, names_that_are_macros_of_the_system_have_an_underscore) {
  EXPECT_EQ(EPERM_, 1);
  EXPECT_EQ(to_string(ENOENT_), "ENOENT");
  EXPECT_EQ(PATH_MAX_, 1024u);
}

TEST(Generated, constants_have_their_values) {
  EXPECT_EQ(DECIMAL, 10u);
  EXPECT_EQ(HEXADECIMAL, 255u);
  EXPECT_EQ(OCTAL, 511u);
  EXPECT_EQ(NEGATIVE, -5);
  EXPECT_EQ(LARGE, ~0ull);
  EXPECT_EQ(SMALLEST, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(ALIAS, 10u);
  EXPECT_EQ(TEXT, "a string, as rpcgen has them");
  EXPECT_EQ(LANGUAGE_PROGRAM, 0x20000001u);
}

TEST(Generated, enums_number_as_written_and_refuse_other_numbers) {
  EXPECT_EQ(AZURE, 10);
  EXPECT_EQ(LAST, -1);
  EXPECT_EQ(SECOND, 1);
  EXPECT_EQ(ELEVENTH, 10);
  EXPECT_EQ(to_string(GREEN), "GREEN");
  EXPECT_EQ(scalars().j, RED) << "an enum without a member 0 starts as its first";
  EXPECT_EQ(words_of(flat(BLUE)), (Words{10}));
  EXPECT_EQ(failure<color>(words({3})), Error::None);
  EXPECT_EQ(failure<color>(words({4})), Error::BadEnum);
}

TEST(Generated, scalars_take_the_bytes_of_RFC_4506) {
  scalars value;
  value.a = -1;
  value.b = 2;
  value.d = -2;
  value.e = 1ull << 40;
  value.f = 1.0f;
  value.g = 1.0;
  value.h[15] = std::byte{9};
  value.i = true;
  value.j = RED;
  value.m = -3;
  EXPECT_EQ(words_of(flat(value)),
            (Words{0xffffffff, 2, 0, 0xffffffff, 0xfffffffe, 0x100, 0, 0x3f800000, 0x3ff00000, 0, 0,
                   0, 0, 9, 1, 2, 0, 0, 0xfffffffd}));
  expect_round_trip(value);
  EXPECT_EQ(stag::xdr::max_size<scalars>, 19u * 4);
  EXPECT_EQ(stag::xdr::min_size<scalars>, 19u * 4);
}

containers full() {
  containers value;
  value.fixed = {std::byte{1}, std::byte{2}};
  value.small = stag::xdr::BoundedOpaque<16>(bytes_of("small"));
  value.big = Rope::copy_of(bytes_of(std::string(2000, 'b')));
  value.text = "text";
  value.bounded_text = "seven!!";
  value.numbers = {4, 5};
  value.points = {{1, 2}, {3, 4}};
  value.flags = {true, false, true};
  value.colors = {GREEN};
  value.keys.resize(2);
  value.handles = {handle(bytes_of("h1")), handle(bytes_of("handle2"))};
  value.blobs = {Rope::copy_of(bytes_of("x")), Rope()};
  value.many = {"a", "", "ccccc"};
  value.three = {7, 8, 9};
  value.perhaps = "here";
  value.point = point{5, 6};
  value.same = maybe_element{7};
  return value;
}

TEST(Generated, containers_come_back_as_they_went) {
  expect_round_trip(containers{});
  expect_round_trip(full());
}

TEST(Generated, every_cut_of_a_value_is_refused) {
  containers value = full();
  value.big = Rope();
  const Buffer whole = flat(value);
  for (std::size_t cut = 0; cut < whole.size(); cut += 4)
    EXPECT_EQ(failure<containers>(whole.slice(0, cut)), Error::Truncated) << cut;
  EXPECT_EQ(failure<containers>(words({0, 0, 17})), Error::TooLong);
}

TEST(Generated, values_above_their_bounds_do_not_encode) {
  containers value;
  value.bounded_text = "eight!!!";
  EXPECT_FALSE(stag::xdr::encode(value).ok());
  value = {};
  value.points.resize(4);
  EXPECT_FALSE(stag::xdr::encode(value).ok());
}

TEST(Generated, anonymous_types_are_named_after_their_fields) {
  nested value;
  value.outer.depth = 3;
  value.outer.what.known = true;
  value.outer.what.level() = HIGH;
  value.named.a = 1;
  static_assert(std::is_same_v<decltype(value.outer.what), nested_outer_what>);
  expect_round_trip(value);
  EXPECT_EQ(words_of(flat(value.outer)), (Words{3, 1, 2}));
}

TEST(Generated, a_union_encodes_the_arm_its_discriminant_selects) {
  by_enum value;
  value.which = GREEN;
  value.other() = "abc";
  EXPECT_EQ(words_of(flat(value)), (Words{3, 3, 0x61626300}));
  expect_round_trip(value);
  // The arm that is held is another one: the selected one's default value is sent.
  value.which = RED;
  EXPECT_EQ(words_of(flat(value)), (Words{2, 0}));
  value.which = LAST;
  EXPECT_EQ(words_of(flat(value)), (Words{0xffffffff}));
}

TEST(Generated, unions_without_default_refuse_other_discriminants) {
  EXPECT_EQ(failure<by_int>(words({0xffffffff, 0})), Error::None);
  EXPECT_EQ(failure<by_int>(words({10, 0})), Error::None);
  EXPECT_EQ(failure<by_int>(words({5})), Error::BadDiscriminant);
  EXPECT_EQ(failure<by_unsigned_only>(words({1, 0})), Error::None);
  by_int value;
  value.which = 5;
  EXPECT_FALSE(stag::xdr::encode(value).ok());
  const auto rest = stag::xdr::decode<by_unsigned>(words({77, 0x3ff00000, 0}));
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->rest(), 1.0);
}

TEST(Generated, a_union_of_many_arms_is_a_value_like_any_other) {
  many_arms text{.kind = 4};
  text.four() = "four";
  many_arms nested{.kind = 8};
  nested.eight() = {text, {}, text};
  nested.eight()[1].kind = 9;
  nested.eight()[1].nine().which = -1;
  nested.eight()[1].nine().data() = Rope::copy_of(bytes_of("five"));
  expect_round_trip(nested);
  many_arms copy = nested;
  EXPECT_EQ(copy, nested);
  copy.eight()[2].four() = "five";
  EXPECT_NE(copy, nested);
  const many_arms moved = std::move(copy);
  EXPECT_EQ(moved.eight()[2].four(), "five");
  copy = moved;
  EXPECT_EQ(copy, moved);
  static_assert(std::is_nothrow_move_constructible_v<many_arms>);
}

TEST(Generated, a_union_of_many_arms_encodes_a_default_for_an_arm_that_it_does_not_hold) {
  many_arms value{.kind = 4};
  value.four() = "four";
  value.kind = 3;
  EXPECT_EQ(words_of(flat(value)), (Words{3, 0, 0}));
  EXPECT_EQ(failure<many_arms>(words({10})), Error::BadDiscriminant);
}

TEST(Generated, the_list_idiom_is_a_vector_with_the_bytes_of_a_list) {
  directory value;
  value.entries.resize(2);
  value.entries[0].id = 1;
  value.entries[1].name = Rope::copy_of(bytes_of("ab"));
  value.others.resize(1);
  value.others[0].weight = 6;
  value.end = true;
  EXPECT_EQ(words_of(flat(value)), (Words{1, 0, 1, 0, 1, 0, 0, 2, 0x61620000, 0, 1, 6, 0, 1}));
  expect_round_trip(value);
}

TEST(Generated, a_list_of_200000_entries_needs_no_stack_and_little_memory) {
  directory value;
  value.entries.resize(200'000);
  value.entries.back().id = 77;
  expect_round_trip(value);
  // The last entry says that another one follows, and the stream ends.
  const Buffer whole = flat(value);
  EXPECT_EQ(failure<directory>(whole.slice(0, whole.size() - 12)), Error::Truncated);
}

TEST(Generated, trees_nest_as_deep_as_the_limit_and_no_deeper) {
  const auto deep = [](std::size_t levels) {
    Encoder encoder;
    for (std::size_t i = 0; i < levels; ++i) {
      encoder.i32(static_cast<std::int32_t>(i));
      encoder.boolean(i + 1 < levels);
    }
    for (std::size_t i = 0; i < levels; ++i) encoder.boolean(false);
    return std::move(encoder).finish().rope().flatten();
  };
  EXPECT_EQ(failure<tree>(deep(64)), Error::None);
  EXPECT_EQ(failure<tree>(deep(65)), Error::TooDeep);
  EXPECT_EQ(failure<tree>(deep(1'000'000)), Error::TooDeep);
  tree value;
  value.left = tree{};
  value.left->right.emplace().key = 5;
  expect_round_trip(value);
}

TEST(Generated, recursive_unions_are_bounded_too) {
  Encoder encoder;
  for (int i = 0; i < 100'000; ++i) {
    encoder.i32(1);
    encoder.u32(1);
  }
  EXPECT_EQ(failure<expression>(std::move(encoder).finish().rope().flatten()), Error::TooDeep);
  expression value;
  value.kind = 1;
  value.operands().resize(2);
  value.operands()[1].kind = 2;
  value.operands()[0].literal() = 4;
  value.operands()[1].negated() = expression{};
  value.operands()[1].negated()->literal() = 5;
  expect_round_trip(value);
}

TEST(Generated, a_list_whose_head_stands_by_value_keeps_its_bytes) {
  chain_user value;
  EXPECT_EQ(words_of(flat(value)), (Words{0, 0}));
  value.whole.link = 1;
  value.whole.next = {{2}, {3}};
  EXPECT_EQ(words_of(flat(value)), (Words{1, 1, 2, 1, 3, 0}));
  expect_round_trip(value);
  // By pointer, it is that pointer's flag and the same.
  segmented pointed{.kind = 1, .arms_ = {}};
  EXPECT_EQ(words_of(flat(pointed)), (Words{1, 0}));
  pointed.list().emplace().more.resize(1);
  EXPECT_EQ(words_of(flat(pointed)), (Words{1, 1, 0, 1, 0, 0}));
  expect_round_trip(pointed);
}

TEST(Generated, a_list_of_200000_nodes_behind_its_head_needs_no_stack) {
  chain_user value;
  value.whole.next.resize(200'000);
  value.whole.next.back().link = 77;
  expect_round_trip(value);
  const Buffer whole = flat(value);
  EXPECT_EQ(failure<chain_user>(whole.slice(0, whole.size() - 4)), Error::Truncated);
}

TEST(Generated, nodes_behind_a_head_have_the_items_of_the_head) {
  segmented value;
  value.first().body = Rope::copy_of(bytes_of("one"));
  value.first().more.resize(2);
  value.first().more[1].body = Rope::copy_of(bytes_of("two"));
  static constexpr std::array kWatched = {item::segment_body};
  const stag::xdr::Stream stream = stag::xdr::encode(value, kWatched);
  ASSERT_EQ(stream.items().size(), 3u);
  EXPECT_EQ(stream.items()[2].length, 3u);
  expect_round_trip(value);
  static_assert(std::is_same_v<decltype(segment::more), std::vector<segment_more_>>);
}

TEST(Generated, items_are_recorded_under_their_fields_id) {
  static constexpr std::array kWatched = {item::containers_big};
  const stag::xdr::Stream stream = stag::xdr::encode(full(), kWatched);
  ASSERT_EQ(stream.items().size(), 1u);
  EXPECT_EQ(stream.items()[0].id, item::containers_big);
  EXPECT_EQ(stream.items()[0].position, 8u + 4 + 8 + 4);
  EXPECT_EQ(stream.items()[0].length, 2000u);
}

TEST(Generated, sizes_are_bounded_where_the_type_is) {
  EXPECT_EQ(stag::xdr::max_size<point>, 8u);
  EXPECT_EQ(stag::xdr::max_size<by_int>, std::nullopt);
  EXPECT_EQ(stag::xdr::max_size<by_unsigned>, 12u);
  EXPECT_EQ(stag::xdr::max_size<tree>, std::nullopt);
  EXPECT_EQ(stag::xdr::min_size<by_int>, 4u);
  EXPECT_EQ(stag::xdr::min_size<tree>, 12u);
  EXPECT_EQ(stag::xdr::max_size<item_>, 4u);
}

static_assert(stag::xdr::Procedure<LANGUAGE_MOVE>);
static_assert(stag::xdr::Procedure<LANGUAGE_LABELS>);
static_assert(std::is_same_v<LANGUAGE_TEXT::Args, std::string>);

TEST(Generated, procedures_describe_their_calls) {
  EXPECT_EQ(LANGUAGE_MOVE::program, 0x20000001u);
  EXPECT_EQ(LANGUAGE_MOVE::version, 1u);
  EXPECT_EQ(LANGUAGE_MOVE::number, 1u);
  EXPECT_EQ(LANGUAGE_MOVE::name, "LANGUAGE_MOVE");
  EXPECT_EQ(LANGUAGE_SAME::number, 3u);
  EXPECT_EQ(LANGUAGE_V2_procedures::LANGUAGE_NULL::version, 2u);
  EXPECT_EQ(LANGUAGE_SAME::number, 3u);
  EXPECT_EQ(LANGUAGE_V2_procedures::LANGUAGE_NULL::max_results_size, 0u);
  EXPECT_EQ(LANGUAGE_MOVE::max_args_size, std::nullopt);
  EXPECT_EQ(LANGUAGE_MOVE::max_results_size, 8u);
}

TEST(Generated, several_arguments_are_encoded_one_after_the_other) {
  LANGUAGE_MOVE::Args args;
  args.arg1 = {1, 2};
  args.arg2 = 3;
  args.arg3 = "abcd";
  Encoder encoder;
  LANGUAGE_MOVE::encode_args(encoder, args);
  const Buffer bytes = std::move(encoder).finish().rope().flatten();
  EXPECT_EQ(words_of(bytes), (Words{1, 2, 3, 4, 0x61626364}));
  LANGUAGE_MOVE::Args back;
  Decoder decoder(bytes);
  EXPECT_TRUE(LANGUAGE_MOVE::decode_args(decoder, back) && decoder.finish().ok());
  EXPECT_EQ(back, args);
}

TEST(Generated, typedefs_as_arguments_and_results_have_codecs) {
  Encoder encoder;
  LANGUAGE_LABELS::encode_results(encoder, {"a", "b"});
  LANGUAGE_NAME::encode_results(encoder, "c");
  const Buffer bytes = std::move(encoder).finish().rope().flatten();
  EXPECT_EQ(words_of(bytes), (Words{2, 1, 0x61000000, 1, 0x62000000, 1, 0x63000000}));
  labels back;
  Decoder decoder(bytes.slice(0, 20));
  EXPECT_TRUE(LANGUAGE_LABELS::decode_results(decoder, back) && decoder.finish().ok());
  EXPECT_EQ(back, (labels{"a", "b"}));
}

// What was moved out of a stream, by position.
class Moved final : public stag::xdr::ItemSource {
 public:
  std::vector<std::pair<std::uint32_t, Rope>> bodies;
  std::optional<Rope> take(stag::xdr::ItemId, std::uint32_t, std::uint32_t) override { return {}; }
  std::optional<Rope> take_body(stag::xdr::ItemId, std::uint32_t position) override {
    for (const auto& [at, body] : bodies)
      if (at == position) return body;
    return {};
  }
};

TEST(Generated, lists_and_optionals_that_are_marked_move_as_a_whole) {
  catalogue from;
  from.pages.resize(3);
  from.pages[1].id = 9;
  from.root.emplace().key = 1;
  from.root->left.emplace().key = 2;
  from.end = 7;
  expect_round_trip(from);
  expect_round_trip(catalogue{});
  static constexpr stag::xdr::ItemId kBoth[] = {item::catalogue_pages, item::catalogue_root};
  const stag::xdr::Stream stream = stag::xdr::encode(from, kBoth);
  ASSERT_EQ(stream.items().size(), 2u);
  const std::vector<std::uint32_t> both{0, 1};
  const Buffer rest = stream.without(both).flatten();
  EXPECT_EQ(words_of(rest), (Words{1, 1, 7}));
  Moved moved;
  for (const std::uint32_t i : both)
    moved.bodies.emplace_back(stream.items()[i].position, stream.item_bytes(i));
  const auto back = stag::xdr::decode<catalogue>(rest, &moved);
  ASSERT_TRUE(back.ok()) << to_string(back.error());
  EXPECT_EQ(*back, from);
  // An end too early, and one too late.
  const Rope pages = moved.bodies[0].second;
  moved.bodies[0].second = pages.slice(0, pages.size() - 4);
  EXPECT_FALSE(stag::xdr::decode<catalogue>(rest, &moved).ok());
  moved.bodies[0].second = pages;
  moved.bodies[0].second.append(words({0}));
  EXPECT_FALSE(stag::xdr::decode<catalogue>(rest, &moved).ok());
}

}  // namespace
