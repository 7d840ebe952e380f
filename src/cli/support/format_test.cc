#include "cli/support/format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace stag::cli {
namespace {

TEST(Format, tells_times_beyond_the_calendar_in_seconds) {
  EXPECT_EQ(time_text({std::numeric_limits<std::int64_t>::max(), 0}), "@9223372036854775807");
  EXPECT_EQ(time_text({std::numeric_limits<std::int64_t>::min(), 0}), "@-9223372036854775808");
  EXPECT_EQ(time_text({100'000'000, 0}).substr(0, 8), "1973-03-");
}

TEST(Format, writes_short_sizes_as_du_does) {
  const std::pair<std::uint64_t, const char*> sizes[] = {
      {0, "0"},
      {1023, "1023"},
      {1024, "1.0K"},
      {1025, "1.1K"},
      {10'000, "9.8K"},
      {10 * 1024 - 1, "10K"},
      {10 * 1024 + 1, "11K"},
      {12 * 1024, "12K"},
      {1024 * 1024 - 1, "1.0M"},
      {3'000'000, "2.9M"},
      {std::uint64_t{5} << 30, "5.0G"},
      {std::uint64_t{5} << 60, "5.0E"},
      {std::numeric_limits<std::uint64_t>::max(), "16E"},
  };
  for (const auto& [bytes, text] : sizes) EXPECT_EQ(short_size(bytes), text);
}

}  // namespace
}  // namespace stag::cli
