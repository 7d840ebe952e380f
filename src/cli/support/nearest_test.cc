#include "cli/support/nearest.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

const std::vector<std::string> kNames{"mkdir", "mv", "recursive", "rm", "timeout", "update"};

TEST(Nearest, is_what_differs_in_few_letters) {
  EXPECT_EQ(nearest("recusive", kNames), "recursive");
  EXPECT_EQ(nearest("tiemout", kNames), "timeout");
  EXPECT_EQ(nearest("mkdri", kNames), "") << "two letters of five";
}

TEST(Nearest, is_what_a_word_begins_with_or_what_begins_with_it) {
  EXPECT_EQ(nearest("time", kNames), "timeout");
  EXPECT_EQ(nearest("rmdir", kNames), "rm");
}

TEST(Nearest, is_nothing_where_nothing_is_like_it) {
  EXPECT_EQ(nearest("mtime", kNames), "");
  EXPECT_EQ(nearest("i", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest("bogus", {}), "");
}

}  // namespace
}  // namespace stag::cli
