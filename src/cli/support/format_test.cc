#include "cli/support/format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace stag::cli {
namespace {

TEST(Format, tells_times_beyond_the_calendar_in_seconds) {
  EXPECT_EQ(time_text({std::numeric_limits<std::int64_t>::max(), 0}), "@9223372036854775807");
  EXPECT_EQ(time_text({std::numeric_limits<std::int64_t>::min(), 0}), "@-9223372036854775808");
  EXPECT_EQ(time_text({100'000'000, 0}).substr(0, 8), "1973-03-");
}

}  // namespace
}  // namespace stag::cli
