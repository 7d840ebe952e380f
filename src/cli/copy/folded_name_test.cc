#include "cli/copy/folded_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FoldedName, is_one_of_names_that_differ_in_case) {
  EXPECT_EQ(folded_name("ReadMe.TXT"), folded_name("README.txt"));
  EXPECT_EQ(folded_name("МОСКВА й"), folded_name("москва Й"));
  EXPECT_EQ(folded_name("ΛΌΓΟΣ"), folded_name("λόγος"));
  EXPECT_EQ(folded_name("ÄÖÜ ž"), folded_name("äöü Ž"));
  EXPECT_EQ(folded_name("Երևան"), folded_name("երևան"));
  EXPECT_EQ(folded_name("Straße"), folded_name("STRASSE"));
  EXPECT_EQ(folded_name("\u212A1"), folded_name("k1"));
}

TEST(FoldedName, is_one_of_the_normal_forms_of_a_name) {
  EXPECT_EQ(folded_name("caf\u00e9.txt"), folded_name("cafe\u0301.txt"));
  EXPECT_EQ(folded_name("\u0439"), folded_name("\u0438\u0306"));
  EXPECT_EQ(folded_name("\uD55C\uAE00"), folded_name("\u1112\u1161\u11AB\u1100\u1173\u11AF"));
  EXPECT_EQ(folded_name("\u30D1\u30C6"), folded_name("\u30CF\u309A\u30C6"));
  EXPECT_EQ(folded_name("\u304C"), folded_name("\u304B\u3099"));
}

TEST(FoldedName, leaves_out_what_some_file_systems_do_not_see) {
  EXPECT_EQ(folded_name("name. ."), folded_name("name"));
  EXPECT_EQ(folded_name("na\u200Bme"), folded_name("name"));
}

TEST(FoldedName, is_another_one_of_another_name) {
  EXPECT_NE(folded_name("a"), folded_name("b"));
  EXPECT_NE(folded_name("Москва"), folded_name("Киев"));
  EXPECT_NE(folded_name("\u30C6\u30B9\u30C8"), folded_name("\u30C6\u30B9"));
  EXPECT_NE(folded_name("\uD55C"), folded_name("\uAE00"));
  EXPECT_NE(folded_name("文"), folded_name("字"));
}

TEST(FoldedName, takes_bytes_that_are_no_text) {
  EXPECT_EQ(folded_name("a\xff\xc3"), folded_name("a"));
  EXPECT_EQ(folded_name("\xc3"), folded_name("\xe0\x80"));
  EXPECT_EQ(folded_name(""), "");
}

TEST(NameGroups, tell_of_the_names_before_that_may_be_one) {
  const std::string names[] = {"README", "other", "readme", "ReadMe", "OTHER."};
  NameGroups groups;
  EXPECT_THAT(groups.add(names[0]), IsEmpty());
  EXPECT_THAT(groups.add(names[1]), IsEmpty());
  EXPECT_THAT(groups.add(names[2]), ElementsAre("README"));
  EXPECT_THAT(groups.add(names[3]), ::testing::UnorderedElementsAre("README", "readme"));
  EXPECT_THAT(groups.add(names[4]), ElementsAre("other"));
}

}  // namespace
}  // namespace stag::cli
