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

TEST(Stamp, is_a_day_and_a_time_as_touch_has_them) {
  constexpr std::int64_t kIn2024 = 1709209800;
  const auto full = parse_date("2024-02-29 14:30:00");
  EXPECT_EQ(parse_stamp("202402291430", 0), full);
  EXPECT_EQ(parse_stamp("2402291430", 0), full);
  EXPECT_EQ(parse_stamp("02291430", kIn2024), full);
  EXPECT_EQ(parse_stamp("02291430.59", kIn2024), parse_date("2024-02-29 14:30:59"));
  EXPECT_EQ(parse_stamp("202402291430.60", 0), parse_date("2024-02-29 14:31:00"));
  EXPECT_EQ(parse_stamp("6901010000", 0), parse_date("1969-01-01 00:00"));
  EXPECT_EQ(parse_stamp("6812312359", 0), parse_date("2068-12-31 23:59"));
  for (const char* text : {"", "2402291430 ", "0229143", "202302291430", "202402292430",
                           "202402291460", "202402291430.", "202402291430.5", "202402291430.61",
                           "2402291430.59.1", "-402291430", "0x02291430", "20240229143000"})
    EXPECT_FALSE(parse_stamp(text, kIn2024)) << text;
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
