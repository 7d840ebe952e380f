// What the generated code of testdata/scopes.x does. That it compiles is most of the test.
#include "scopes/scopes.h"

#include <gtest/gtest.h>

namespace scopes {
namespace {

using stag::Buffer;
using stag::xdr::Encoder;

using Words = std::vector<std::uint32_t>;

template <class T>
Words words_of(const T& from) {
  const Buffer bytes = stag::xdr::encode(from).rope().flatten();
  Words result;
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4)
    result.push_back(stag::load_be<std::uint32_t>(bytes.data() + at));
  return result;
}

template <class T>
void expect_round_trip(const T& from) {
  const auto back = stag::xdr::decode<T>(stag::xdr::encode(from).rope().flatten());
  ASSERT_TRUE(back.ok()) << to_string(back.error());
  EXPECT_EQ(*back, from);
}

TEST(Scopes, members_may_be_called_like_the_constants_that_they_are_declared_with) {
  hiding value;
  EXPECT_EQ(value.shade, RED) << "the first of the enum, not the member";
  EXPECT_EQ(value.data.kBound, 8u);
  value.LEN = 5;
  EXPECT_EQ(words_of(value), (Words{0, 1, 0, 5}));
  expect_round_trip(value);
  hiding_arms arms;
  EXPECT_EQ(arms.shade, RED);
  EXPECT_EQ(arms.LEN().kBound, 8u);
  arms.shade = GREEN;
  arms.RED() = 7;
  EXPECT_EQ(words_of(arms), (Words{2, 7}));
  expect_round_trip(arms);
}

TEST(Scopes, an_enumerator_may_be_called_like_a_variable_of_the_generated_code) {
  EXPECT_EQ(words_of(number), (Words{1}));
  expect_round_trip(number);
}

TEST(Scopes, a_case_of_an_int_or_enum_may_be_written_as_32_bits_without_a_sign) {
  hiding_arms arms{.shade = LAST, .arms_ = {}};
  arms.last() = 2;
  EXPECT_EQ(words_of(arms), (Words{0xffffffff, 0, 2}));
  expect_round_trip(arms);
  by_int value{.which = -1, .arms_ = {}};
  value.none() = 3;
  EXPECT_EQ(words_of(value), (Words{0xffffffff, 3}));
  expect_round_trip(value);
  value.which = std::numeric_limits<std::int32_t>::min();
  value.smallest() = 4;
  EXPECT_EQ(words_of(value), (Words{0x80000000, 0, 4}));
  expect_round_trip(value);
}

TEST(Scopes, a_case_may_be_a_name_that_is_a_number_to_rpcgen_alone) {
  by_int value{.which = 1, .arms_ = {}};
  value.one() = true;
  EXPECT_EQ(words_of(value), (Words{1, 1}));
  value.which = 0;
  EXPECT_EQ(words_of(value), (Words{0}));
}

TEST(Scopes, versions_of_one_name_have_procedures_of_their_own) {
  EXPECT_EQ(FIRST_VERS_procedures::NULLPROC::program, FIRST);
  EXPECT_EQ(SECOND_VERS_procedures::NULLPROC::program, SECOND);
  EXPECT_EQ(NEXT_procedures::NULLPROC::version, NEXT);
  EXPECT_EQ(VERS, 1u);
  EXPECT_EQ(THIRD_VERS, 3u) << "another number under the same name";
  EXPECT_EQ(THIRD_VERS_procedures::NULLPROC::version, THIRD_VERS);
}

TEST(Scopes, a_procedure_that_is_called_like_a_type_has_the_number_of_its_version_behind_its_name) {
  EXPECT_EQ(lookup_1::name, "lookup");
  EXPECT_EQ(lookup_1::number, 1u);
  EXPECT_EQ(color_3::name, "color");
  static_assert(std::is_same_v<lookup_1::Args, lookup>);
  static_assert(std::is_same_v<lookup_1::Results, lookup>);
}

TEST(Scopes, procedures_of_one_name_may_each_have_several_arguments) {
  static_assert(std::is_same_v<FIRST_VERS_procedures::PAIR::Args, PAIR_args>);
  static_assert(std::is_same_v<NEXT_procedures::PAIR::Args, NEXT_PAIR_args>);
  static_assert(std::is_same_v<SECOND_VERS_procedures::PAIR::Args, VERS_PAIR_args>);
  static_assert(std::is_same_v<THIRD_VERS_procedures::PAIR::Args, THIRD_VERS_PAIR_args>);
  EXPECT_EQ(words_of(NEXT_PAIR_args{1, 2, 3}), (Words{1, 2, 3}));
  EXPECT_EQ(words_of(VERS_PAIR_args{1, 2}), (Words{0, 1, 0, 2}));
}

}  // namespace
}  // namespace scopes
