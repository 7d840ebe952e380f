#include "cli/support/date.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using nfs::client::Time;

TEST(Date, is_a_day_with_or_without_a_time) {
  EXPECT_EQ(parse_date("1970-01-02Z"), (Time{86400, 0}));
  EXPECT_EQ(parse_date("1970-01-02 UTC"), (Time{86400, 0}));
  EXPECT_EQ(parse_date("2024-02-29T12:30Z"), (Time{1709209800, 0}));
  EXPECT_EQ(parse_date("2024-02-29 12:30:01.5 UTC"), (Time{1709209801, 500000000}));
  EXPECT_TRUE(parse_date("2024-02-29 12:30"));
  EXPECT_TRUE(parse_date("2024-02-29"));
}

TEST(Date, has_the_offset_of_a_time_zone) {
  for (const char* text :
       {"2024-02-29T14:30+02:00", "2024-02-29 14:30 +0200", "2024-02-29T14:30+02",
        "2024-02-29T07:00:00-05:30", "2024-03-01T00:00+11:30"})
    EXPECT_EQ(parse_date(text), (Time{1709209800, 0})) << text;
  EXPECT_EQ(parse_date("2024-02-29T14:30:01.5+02:00"), (Time{1709209801, 500000000}));
  for (const char* text :
       {"2024-02-29+02:00", "2024-02-29T14:30+2", "2024-02-29T14:30+24:00",
        "2024-02-29T14:30+02:60", "2024-02-29T14:30+02:", "2024-02-29T14:30+02:00Z",
        "2024-02-29T14:30+02:00 UTC", "2024-02-29T14:30 2", "2024-02-29T14:30+"})
    EXPECT_FALSE(parse_date(text)) << text;
}

TEST(Date, is_seconds_since_1970) {
  EXPECT_EQ(parse_date("@0"), (Time{0, 0}));
  EXPECT_EQ(parse_date("@1700000000.25"), (Time{1700000000, 250000000}));
  EXPECT_EQ(parse_date("@-5"), (Time{-5, 0}));
}

TEST(Date, has_leap_seconds_of_days_that_there_are) {
  EXPECT_EQ(parse_date("2016-12-31 23:59:60Z"), parse_date("2017-01-01 00:00:00Z"));
  EXPECT_EQ(parse_date("2024-02-29 12:00:60Z"), parse_date("2024-02-29 12:01:00Z"));
  EXPECT_FALSE(parse_date("2024-02-31 12:00:60Z"));
  EXPECT_FALSE(parse_date("2024-02-31 12:00:60"));
  EXPECT_FALSE(parse_date("2023-02-29 23:59:60Z"));
}

TEST(Date, is_nothing_else) {
  for (const char* text : {"", "@", "@x", "yesterday", "2024", "2024-2-9", "2023-02-29",
                           "2024-13-01", "2024-01-01T25:00", "2024-01-01 12", "2024-01-01x",
                           "2024-01-01T", "@1.", "2024-01-01 12:00 CET"})
    EXPECT_FALSE(parse_date(text)) << text;
}

}  // namespace
}  // namespace stag::cli
