// A capture whose disk is slow, or full.
#include "cli/observe/capture_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
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
  for (int i = 0; i < 100; ++i) file.queue()->take(bytes_of("frame"));
  const CaptureQueue::Counts counts = file.finish();
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
  CaptureFile file([disk](Bytes) { return disk.wait(), true; }, CaptureFile::kUsual,
                   10 * packet_size(100));
  const std::vector<std::byte> frame(100);
  for (int i = 0; i < 1000; ++i) file.queue()->take(frame);
  goes_on.set_value();
  const CaptureQueue::Counts counts = file.finish();
  EXPECT_EQ(counts.frames, 1000u);
  EXPECT_GE(counts.lost, 980u);
  EXPECT_LT(counts.lost, 1000u);
}

TEST(CaptureFile, writes_no_frames_behind_lost_ones_but_how_many_there_were) {
  int writes = 0;
  CaptureFile file([&](Bytes) { return ++writes, false; });
  file.queue()->take(bytes_of("frame"));
  EXPECT_EQ(file.finish().lost, 1u);
  EXPECT_EQ(writes, 2);
  file.queue()->take(bytes_of("frame"));
  EXPECT_EQ(file.finish().lost, 2u);
}

TEST(CaptureFile, ends_where_it_may_not_grow_and_counts_what_came_later) {
  std::size_t written = 0;
  CaptureFile file([&](Bytes bytes) { return written += bytes.size(), true; }, 10000);
  const std::vector<std::byte> large(4096);
  for (int i = 0; i < 5; ++i) file.queue()->take(large);
  file.queue()->take(bytes_of("small"));
  const CaptureQueue::Counts counts = file.finish();
  EXPECT_EQ(counts.frames, 6u);
  EXPECT_EQ(counts.lost, 4u);
  EXPECT_LT(written, 10000u);
}

class CaptureFileAt : public ::testing::Test {
 protected:
  CaptureFileAt() {
    std::string made = ::testing::TempDir() + "captureXXXXXX";
    folder_ = ::mkdtemp(made.data());
  }
  ~CaptureFileAt() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/capture"; }
  void put(mode_t mode) {
    std::ofstream(path()) << "of before";
    ::chmod(path().c_str(), mode);
  }
  // Why it cannot be opened.
  std::string refused() const {
    const auto made = CaptureFile::open(path(), CaptureFile::kUsual);
    return made ? "it is opened" : made.error();
  }

  std::string folder_;
};

TEST_F(CaptureFileAt, a_file_that_all_could_read_is_its_users_alone) {
  put(0644);
  ASSERT_TRUE(CaptureFile::open(path(), CaptureFile::kUsual).ok());
  struct stat found {};
  ASSERT_EQ(::stat(path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  std::string begins(4, 0);
  std::ifstream(path()).read(begins.data(), 4);
  EXPECT_EQ(begins, "\x0a\x0d\x0d\x0a");
}

TEST_F(CaptureFileAt, a_file_with_other_names_is_left_alone) {
  put(0644);
  std::filesystem::create_hard_link(path(), folder_ + "/other");
  EXPECT_NE(refused().find("it has other names, too"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path()), 9u);
}

TEST_F(CaptureFileAt, a_fifo_is_neither_waited_for_nor_written_to) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_NE(refused().find("cannot write"), std::string::npos);
  const UniqueFd reader(::open(path().c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_NE(refused().find("it is no regular file"), std::string::npos);
}

TEST_F(CaptureFileAt, a_file_that_another_capture_writes_is_left_alone) {
  const auto first = CaptureFile::open(path(), CaptureFile::kUsual);
  ASSERT_TRUE(first.ok());
  EXPECT_NE(refused().find("another process captures to it"), std::string::npos);
  (*first)->finish();
  EXPECT_GT(std::filesystem::file_size(path()), 0u);
}

TEST_F(CaptureFileAt, a_successor_waits_for_the_end_of_the_one_before) {
  auto first = CaptureFile::open(path(), CaptureFile::kUsual);
  ASSERT_TRUE(first.ok());
  auto second = std::async(std::launch::async, [this] {
    return CaptureFile::open(path(), CaptureFile::kUsual, {}, std::chrono::hours(1));
  });
  *first = nullptr;
  EXPECT_TRUE(second.get().ok());
}

TEST_F(CaptureFileAt, a_file_that_cannot_grow_any_more_ends_with_a_whole_block_and_says_why) {
  constexpr rlim_t kMost = 64 << 10;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto by_signal = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit narrow{kMost, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &narrow), 0);
  std::vector<std::string> why;
  auto file = CaptureFile::open(path(), CaptureFile::kUsual,
                                [&why](const std::string& each) { why.push_back(each); });
  while (std::filesystem::file_size(path()) == 0) std::this_thread::yield();
  const std::vector<std::byte> frame(4096);
  for (int i = 0; i < 40; ++i) (*file)->queue()->take(frame);
  EXPECT_GT((*file)->finish().lost, 0u);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, by_signal);
  EXPECT_EQ(why, std::vector<std::string>{std::strerror(EFBIG)});
  std::ifstream in(path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GE(bytes.size(), 12u);
  EXPECT_LE(bytes.size(), kMost);
  std::uint32_t length = 0, type = 0;
  std::memcpy(&length, &bytes[bytes.size() - 4], 4);
  ASSERT_LE(length, bytes.size());
  std::memcpy(&type, &bytes[bytes.size() - length], 4);
  EXPECT_EQ(type, 5u) << "Interface Statistics Block";
}

TEST(CaptureFile, needs_a_place_to_be_written_to) {
  const auto refused = CaptureFile::open("/nowhere/at/all", CaptureFile::kUsual);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().find("--capture: cannot write '/nowhere/at/all'"), std::string::npos);
}

}  // namespace
}  // namespace stag::cli
