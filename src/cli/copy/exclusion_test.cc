#include "cli/copy/exclusion.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

TEST(Exclusion, excludes_a_name_at_any_depth) {
  const Exclusion exclusion({"*.o", "[ab]"});
  EXPECT_TRUE(exclusion.excludes("x.o", false));
  EXPECT_TRUE(exclusion.excludes("deep/down/x.o", false));
  EXPECT_TRUE(exclusion.excludes("deep/a", true));
  EXPECT_FALSE(exclusion.excludes("x.obj", false));
  EXPECT_FALSE(exclusion.excludes("a/x", false));
}

TEST(Exclusion, excludes_a_path_below_the_source) {
  const Exclusion exclusion({"/top", "sub/*.tmp"});
  EXPECT_TRUE(exclusion.excludes("top", false));
  EXPECT_FALSE(exclusion.excludes("sub/top", false));
  EXPECT_TRUE(exclusion.excludes("sub/x.tmp", false));
  EXPECT_FALSE(exclusion.excludes("sub/deep/x.tmp", false));
}

TEST(Exclusion, excludes_directories_alone_with_a_slash_behind) {
  const Exclusion exclusion({"cache/"});
  EXPECT_TRUE(exclusion.excludes("a/cache", true));
  EXPECT_FALSE(exclusion.excludes("a/cache", false));
}

TEST(Exclusion, excludes_nothing_when_it_is_empty) {
  EXPECT_FALSE(Exclusion({"", "/"}).excludes("a", true));
  EXPECT_FALSE(Exclusion().excludes("a", true));
}

TEST(Exclusion, has_the_patterns_of_a_file) {
  const auto patterns = Exclusion::patterns_in(
      "# what is made\n*.o\r\n\n- cache/\n;\na pattern\n- #*#\n- + x\n/last");
  ASSERT_TRUE(patterns);
  EXPECT_EQ(*patterns,
            (std::vector<std::string>{"*.o", "cache/", "a pattern", "#*#", "+ x", "/last"}));
  EXPECT_TRUE(Exclusion::patterns_in("")->empty());
}

TEST(Exclusion, takes_no_file_that_includes) {
  EXPECT_EQ(Exclusion::patterns_in("*.o\n+ *.c\n").error(), "+ *.c");
  EXPECT_EQ(Exclusion::patterns_in("!\n").error(), "!");
}

}  // namespace
}  // namespace stag::cli
