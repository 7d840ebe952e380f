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
constexpr std::size_t kWide = 200;

Progress moved(std::uint64_t bytes, std::uint64_t expected) {
  Progress progress;
  progress.files = 3;
  progress.bytes = bytes;
  progress.expected_bytes = expected;
  return progress;
}

TEST(ProgressLine, shows_a_bar_of_the_bytes_their_rate_and_the_files) {
  const std::string text = progress_text(moved(10 * kMiB, 40 * kMiB), 2, kWide);
  EXPECT_THAT(text, StartsWith("[######..................]  25%  10.0 MiB of 40.0 MiB  5.0 MiB/s"));
  EXPECT_THAT(text, HasSubstr("  3 files"));
}

TEST(ProgressLine, says_how_long_the_rest_takes_at_the_rate_so_far) {
  EXPECT_THAT(progress_text(moved(10 * kMiB, 40 * kMiB), 2, kWide), EndsWith("  00:00:06 left"));
  EXPECT_THAT(progress_text(moved(kMiB, 3662 * kMiB), 1, kWide), EndsWith("  01:01:01 left"));
  // Of a hundred hours and more there is no word.
  EXPECT_THAT(progress_text(moved(1, 1000 * kMiB), 1, kWide), EndsWith("  99:59:59 left"));
}

TEST(ProgressLine, says_nothing_of_the_rest_in_the_first_second_and_before_the_first_byte) {
  EXPECT_THAT(progress_text(moved(10 * kMiB, 40 * kMiB), 0.9, kWide), Not(HasSubstr("left")));
  EXPECT_THAT(progress_text(moved(0, 40 * kMiB), 5, kWide), Not(HasSubstr("left")));
}

TEST(ProgressLine, says_a_second_as_long_as_anything_is_left) {
  EXPECT_THAT(progress_text(moved(39 * kMiB, 40 * kMiB), 2, kWide), EndsWith("  00:00:01 left"));
}

TEST(ProgressLine, has_neither_share_nor_outlook_without_a_total) {
  EXPECT_EQ(progress_text(moved(0, 0), 5, kWide), "0 B  0 B/s  3 files");
  Progress stream = moved(10 * kMiB, 0);
  stream.total_unknown = true;
  EXPECT_EQ(progress_text(stream, 2, kWide), "10.0 MiB  5.0 MiB/s  3 files");
  // Beside a file, whose size is not that of all.
  stream.expected_bytes = 5 * kMiB;
  EXPECT_EQ(progress_text(stream, 2, kWide), "10.0 MiB  5.0 MiB/s  3 files");
}

TEST(ProgressLine, has_neither_share_nor_outlook_until_all_sources_are_listed) {
  Progress found = moved(529 * kMiB, 532 * kMiB);
  found.unlisted = 1;
  EXPECT_EQ(progress_text(found, 2, kWide), "529.0 MiB  264.5 MiB/s  3 files");
  // Eight files are looked for ahead of those that are done.
  found.bytes = found.expected_bytes;
  EXPECT_THAT(progress_text(found, 2, kWide), Not(HasSubstr("syncing")));
  found.unlisted = 0;
  EXPECT_THAT(progress_text(found, 2, kWide), HasSubstr("  100%  532.0 MiB of 532.0 MiB"));
}

TEST(ProgressLine, says_that_nothing_comes_when_that_has_lasted_some_seconds) {
  constexpr double kStill = 3;
  EXPECT_EQ(progress_text(moved(0, 0), 5, kWide, kStill),
            "0 B  0 B/s  3 files  waiting for the server");
  EXPECT_THAT(progress_text(moved(10 * kMiB, 40 * kMiB), 9, kWide, kStill),
              EndsWith("  3 files  waiting for the server"));
  EXPECT_THAT(progress_text(moved(10 * kMiB, 40 * kMiB), 9, kWide, 2.9), EndsWith(" left"));
  EXPECT_THAT(progress_text(moved(kMiB, kMiB), 9, kWide, kStill), EndsWith("  syncing"));
  Progress stream = moved(kMiB, 0);
  stream.total_unknown = true;
  EXPECT_THAT(progress_text(stream, 9, kWide, kStill), EndsWith("  3 files  waiting"));
}

TEST(ProgressLine, leaves_out_the_least_important_where_there_is_no_room) {
  const auto in = [](std::size_t columns) {
    return progress_text(moved(10 * kMiB, 40 * kMiB), 2, columns);
  };
  EXPECT_EQ(in(80), "25%  10.0 MiB of 40.0 MiB  5.0 MiB/s  3 files  00:00:06 left");
  EXPECT_EQ(in(60), "25%  10.0 MiB of 40.0 MiB  5.0 MiB/s  00:00:06 left");
  EXPECT_EQ(in(50), "25%  10.0 MiB of 40.0 MiB  00:00:06 left");
  EXPECT_EQ(in(40), "25%  00:00:06 left");
  EXPECT_EQ(in(18), "25%");
  EXPECT_EQ(in(3), "25");
  EXPECT_EQ(in(1), "");
}

TEST(ProgressLine, says_syncing_when_all_bytes_are_there_and_the_copy_is_not_done) {
  EXPECT_THAT(progress_text(moved(40 * kMiB, 40 * kMiB), 2, kWide), EndsWith("  3 files  syncing"));
  EXPECT_THAT(progress_text(moved(40 * kMiB - 1, 40 * kMiB), 2, kWide), Not(HasSubstr("syncing")));
  // A file that has grown meanwhile.
  EXPECT_THAT(progress_text(moved(41 * kMiB, 40 * kMiB), 2, kWide), HasSubstr("]  100%  "));
}

}  // namespace
}  // namespace stag::cli
