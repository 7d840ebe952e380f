// A capture whose disk is slow, or full.
#include "cli/observe/capture_file.h"

#include <gtest/gtest.h>

#include <future>

#include "fabric/capture/pcapng.h"

namespace stag::cli {
namespace {

using fabric::capture::packet_size;

TEST(CaptureFile, has_all_frames_and_says_so_at_its_end) {
  std::vector<std::byte> written;
  CaptureFile file([&](Bytes bytes) {
    written.insert(written.end(), bytes.begin(), bytes.end());
    return true;
  });
  for (int i = 0; i < 100; ++i) file.take(bytes_of("frame"));
  const CaptureFile::Counts counts = file.finish();
  EXPECT_EQ(counts.frames, 100u);
  EXPECT_EQ(counts.lost, 0u);
  std::vector<std::byte> frame;
  fabric::capture::append_packet(frame, 0, bytes_of("frame"));
  EXPECT_EQ(frame.size(), packet_size(5));
  EXPECT_GT(written.size(), 100 * packet_size(5));
  EXPECT_EQ(written.size() % 4, 0u);
}

TEST(CaptureFile, loses_frames_while_the_disk_hangs_and_nobody_waits) {
  std::promise<void> goes_on;
  std::shared_future<void> disk = goes_on.get_future().share();
  CaptureFile file([disk](Bytes) { return disk.wait(), true; }, 10 * packet_size(100));
  const std::vector<std::byte> frame(100);
  for (int i = 0; i < 1000; ++i) file.take(frame);
  goes_on.set_value();
  const CaptureFile::Counts counts = file.finish();
  EXPECT_EQ(counts.frames, 1000u);
  EXPECT_GE(counts.lost, 980u);
  EXPECT_LT(counts.lost, 1000u);
}

TEST(CaptureFile, loses_what_comes_when_no_more_can_be_written) {
  CaptureFile file([](Bytes) { return false; });
  file.take(bytes_of("frame"));
  file.finish();
  file.take(bytes_of("frame"));
  EXPECT_EQ(file.finish().lost, 1u);
}

TEST(CaptureFile, needs_a_place_to_be_written_to) {
  const auto refused = CaptureFile::open("/nowhere/at/all");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().find("--capture: cannot write '/nowhere/at/all'"), std::string::npos);
}

}  // namespace
}  // namespace stag::cli
