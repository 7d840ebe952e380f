#include "cli/copy/exclusion.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>

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

// What rsync 3.5.0 leaves out of a tree that has these, '/' being behind directories.
TEST(Exclusion, takes_two_stars_as_rsync_does) {
  const std::string kTree =
      "n n/ a/ a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n x/ x/a/ x/a/n x/a/b/ x/a/b/n ab nab x/anb ax/ "
      "ax/yb a/x a/xb";
  const std::pair<const char*, const char*> kCases[] = {
      {"**",
       "n n/ a/ a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n x/ x/a/ x/a/n x/a/b/ x/a/b/n ab nab x/anb ax/ "
       "ax/yb a/x a/xb"},
      {"**/n", "n n/ a/n a/n/ a/b/n a/b/c/n x/a/n x/a/b/n"},
      {"**n", "n n/ a/n a/n/ a/b/n a/b/c/n x/a/n x/a/b/n"},
      {"/**/n", "a/n a/n/ a/b/n a/b/c/n x/a/n x/a/b/n"},
      {"**/n/", "n/ a/n/"},
      {"a/**", "a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n x/a/n x/a/b/ x/a/b/n a/x a/xb"},
      {"/a/**", "a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n a/x a/xb"},
      {"a/**/", "a/n/ a/b/ a/b/c/ x/a/b/"},
      {"a/***", "a/ a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n x/a/ x/a/n x/a/b/ x/a/b/n a/x a/xb"},
      {"/a/***", "a/ a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n a/x a/xb"},
      {"a/**/n", "a/b/n a/b/c/n x/a/b/n"},
      {"/a/**/n", "a/b/n a/b/c/n"},
      {"a**b", "a/b/ x/a/b/ ab x/anb ax/yb a/xb"},
      {"/a**b", "a/b/ ab ax/yb a/xb"},
      {"**/a/**/n", "a/b/n a/b/c/n x/a/b/n"},
      {"a/**/**/n", "a/b/c/n"},
      {"**/[a-b]/n", "a/n a/n/ a/b/n x/a/n x/a/b/n"},
      {"**/[!a]/n", "a/b/n a/b/c/n x/a/b/n"},
      {"?/**", "a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n x/a/ x/a/n x/a/b/ x/a/b/n x/anb a/x a/xb"},
      {"a/b**", "a/b/ a/b/n a/b/c/ a/b/c/n x/a/b/ x/a/b/n"},
      {"**/a/b/***", "a/b/ a/b/n a/b/c/ a/b/c/n x/a/b/ x/a/b/n"},
      {"x/**/b/*", "x/a/b/n"},
      {"***",
       "n n/ a/ a/n a/n/ a/b/ a/b/n a/b/c/ a/b/c/n x/ x/a/ x/a/n x/a/b/ x/a/b/n ab nab x/anb ax/ "
       "ax/yb a/x a/xb"},
      {"**/\\n", "n n/ a/n a/n/ a/b/n a/b/c/n x/a/n x/a/b/n"},
      {"*/**/n", "a/b/n a/b/c/n x/a/n x/a/b/n"},
      {"**b/n", "a/b/n x/a/b/n"},
  };
  for (const auto& [pattern, expected] : kCases) {
    const Exclusion exclusion({pattern});
    std::string excluded, path;
    for (std::istringstream paths(kTree); paths >> path;) {
      const bool directory = path.ends_with('/');
      if (!exclusion.excludes(path.substr(0, path.size() - (directory ? 1 : 0)), directory))
        continue;
      excluded += (excluded.empty() ? "" : " ") + path;
    }
    EXPECT_EQ(excluded, expected) << pattern;
  }
}

TEST(Exclusion, compares_long_paths_with_many_stars_in_no_time) {
  std::string pattern, path;
  for (int i = 0; i < 40; ++i) pattern += "**a";
  for (int i = 0; i < 4000; ++i) path += 'a';
  EXPECT_TRUE(Exclusion({pattern}).excludes(path, false));
  EXPECT_FALSE(Exclusion({pattern + "b"}).excludes(path, false));
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
