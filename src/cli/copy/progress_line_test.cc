#include "cli/copy/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::uint64_t kMiB = 1 << 20;

Progress moved(std::uint64_t bytes, std::uint64_t expected) {
  Progress progress;
  progress.files = 3;
  progress.bytes = bytes;
  progress.expected_bytes = expected;
  return progress;
}

TEST(ProgressLine, shows_a_bar_of_the_bytes_their_rate_and_the_files) {
  const std::string text = progress_text(moved(10 * kMiB, 40 * kMiB), 2);
  EXPECT_THAT(text, StartsWith("[######..................]  25%  10.0 MiB of 40.0 MiB  5.0 MiB/s"));
  EXPECT_THAT(text, HasSubstr("  3 files"));
}

TEST(ProgressLine, says_how_long_the_rest_takes_at_the_rate_so_far) {
  EXPECT_THAT(progress_text(moved(10 * kMiB, 40 * kMiB), 2), EndsWith("  00:00:06 left"));
  EXPECT_THAT(progress_text(moved(kMiB, 3662 * kMiB), 1), EndsWith("  01:01:01 left"));
  // Of a hundred hours and more there is no word.
  EXPECT_THAT(progress_text(moved(1, 1000 * kMiB), 1), EndsWith("  99:59:59 left"));
}

TEST(ProgressLine, says_nothing_of_the_rest_in_the_first_second_and_before_the_first_byte) {
  EXPECT_THAT(progress_text(moved(10 * kMiB, 40 * kMiB), 0.9), Not(HasSubstr("left")));
  EXPECT_THAT(progress_text(moved(0, 40 * kMiB), 5), Not(HasSubstr("left")));
  EXPECT_THAT(progress_text(moved(0, 0), 5), StartsWith("[........................]   0%  "));
}

TEST(ProgressLine, says_syncing_when_all_bytes_are_there_and_the_copy_is_not_done) {
  EXPECT_THAT(progress_text(moved(40 * kMiB, 40 * kMiB), 2), EndsWith("  3 files  syncing"));
  EXPECT_THAT(progress_text(moved(40 * kMiB - 1, 40 * kMiB), 2), Not(HasSubstr("syncing")));
  // A file that has grown meanwhile.
  EXPECT_THAT(progress_text(moved(41 * kMiB, 40 * kMiB), 2), HasSubstr("] 100%  "));
}

}  // namespace
}  // namespace stag::cli
