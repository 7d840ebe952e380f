#include "cli/support/escape.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

TEST(Escape, leaves_text_as_it_is) {
  for (const std::string_view text :
       {""sv, "report 1.txt"sv, "a\\b'\"$"sv, "Größe"sv, "名前"sv, "\U0001f469\u200d\U0001f680"sv})
    EXPECT_EQ(escaped(text), text);
}

TEST(Escape, shows_what_terminals_act_on_as_octal_bytes) {
  EXPECT_EQ(escaped("\x1b[31mred\n\r\0\x7f"sv), "\\033[31mred\\012\\015\\000\\177");
  EXPECT_EQ(escaped("\u009b31m"), "\\302\\23331m") << "CSI as one character";
  EXPECT_EQ(escaped("\u0080\u009f\u00a0"), "\\302\\200\\302\\237\u00a0") << "C1 ends at U+009F";
}

TEST(Escape, shows_what_turns_the_direction_or_begins_a_line) {
  EXPECT_EQ(escaped("txt.\u202egpj"), "txt.\\342\\200\\256gpj");
  for (const std::string_view mark : {"\u061c"sv, "\u200e"sv, "\u200f"sv, "\u2028"sv, "\u2029"sv,
                                      "\u202a"sv, "\u2066"sv, "\u2069"sv})
    EXPECT_EQ(escaped(mark).find(mark), std::string::npos);
}

TEST(Escape, shows_bytes_that_are_no_UTF_8) {
  EXPECT_EQ(escaped("a\xff\x9b\xc3"), "a\\377\\233\\303");
  EXPECT_EQ(escaped("\xc0\x9b"), "\\300\\233") << "an overlong form of ESC's neighbour";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\355\\240\\200") << "a surrogate";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\364\\220\\200\\200") << "beyond U+10FFFF";
  EXPECT_EQ(escaped("\xe2\x82"), "\\342\\202") << "cut off";
  for (const std::string_view bytes : {"\xff"sv, "\xc0\x9b"sv, "\xed\xa0\x80"sv, "\xe2\x82"sv})
    EXPECT_FALSE(is_utf8(bytes));
  EXPECT_TRUE(is_utf8("Größe\x1b\U0001f680"));
}

TEST(Escape, encodes_bytes_as_URLs_do) {
  EXPECT_EQ(percent_encoded("a/b-._~\xff %?"), "a/b-._~%FF%20%25%3F");
}

TEST(Escape, decodes_what_it_has_encoded_and_says_what_it_cannot) {
  const std::string bytes = "a/b-._~\xff %?\0"s;
  EXPECT_EQ(percent_decoded(percent_encoded(bytes)), bytes);
  EXPECT_EQ(percent_decoded("%c3%9f \xff"), "\xc3\x9f \xff");
  for (const std::string_view bad : {"%"sv, "%4"sv, "%4g"sv, "%g4"sv, "%-1"sv, "%%41"sv})
    EXPECT_EQ(percent_decoded(bad), std::nullopt) << bad;
}

TEST(Escape, makes_UTF_8_of_bytes_and_one_text_of_each) {
  for (const std::string_view text : {""sv, "/my \"data\"\\\n\x01"sv, "/café"sv, "\U0001f680"sv})
    EXPECT_EQ(as_utf8(text), text);
  EXPECT_EQ(as_utf8("/caf\xe9"), "/caf%E9");
  EXPECT_EQ(as_utf8("/caf%E9"), "/caf%25E9") << "which is another path";
  EXPECT_EQ(as_utf8("é\xe2\x82/\xed\xa0\x80"), "é%E2%82/%ED%A0%80");
}

}  // namespace
}  // namespace stag::cli
