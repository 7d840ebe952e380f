#include "base/size.h"

#include <gtest/gtest.h>

namespace stag {
namespace {

TEST(Size, is_a_number_of_bytes_or_of_powers_of_1024_or_1000) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("12B"), 12u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("64k"), 65536u);
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("64KB"), 64000u);
  EXPECT_EQ(parse_size("3M"), 3u << 20);
  EXPECT_EQ(parse_size("1.5GiB"), 3u << 29);
  EXPECT_EQ(parse_size("2T"), std::uint64_t{2} << 40);
  EXPECT_EQ(parse_size("18446744073709551615"), UINT64_MAX);
}

TEST(Size, is_nothing_else) {
  for (const char* text : {"", "K", "-1", "1X", "1KK", "1Ki", "1 K", "1..5K", ".", "0x10", "1e3"})
    EXPECT_FALSE(parse_size(text)) << text;
  EXPECT_FALSE(parse_size("18446744073709551616"));
  EXPECT_FALSE(parse_size("16384P"));
  EXPECT_FALSE(parse_size("16384.5P"));
}

}  // namespace
}  // namespace stag
