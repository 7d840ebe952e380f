#include "base/large_blocks.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/buffer.h"

namespace stag {
namespace {

constexpr std::size_t kMebibyte = 1 << 20;

class LargeBlock : public ::testing::Test {
 protected:
  void SetUp() override { release_kept_pages(); }
  void TearDown() override { release_kept_pages(); }
};

TEST_F(LargeBlock, is_taken_again_so_that_no_page_is_new_to_the_next_call) {
  for (const std::size_t size : {72 * 1024, 100'000, 1 << 20, 16 << 20}) {
    const std::byte* where = nullptr;
    {
      const Block first = Block::allocate(size);
      where = first.data();
    }
    EXPECT_NE(kept_page_bytes(), 0u);
    EXPECT_EQ(Block::allocate(size).data(), where);
  }
}

TEST_F(LargeBlock, is_an_eighth_longer_than_asked_for_at_most) {
  for (std::size_t size = 65'537; size < 40 * kMebibyte; size += size / 3) {
    const std::size_t capacity = Block::allocate(size).capacity();
    EXPECT_GE(capacity, size);
    EXPECT_LE(capacity, size + size / 8 + 4096);
  }
}

TEST_F(LargeBlock, goes_back_to_the_system_when_nobody_needed_it_for_two_intervals) {
  TimePoint now{std::chrono::hours(1)};
  const auto an_interval_later = [&now] { release_idle_pages(now += kIdleInterval); };
  Block::allocate(kMebibyte);
  an_interval_later();
  const std::size_t kept = kept_page_bytes();
  EXPECT_GE(kept, kMebibyte);
  // What is used stays, however often the system is asked to take it.
  for (int i = 0; i < 3; ++i) {
    Block::allocate(kMebibyte);
    an_interval_later();
    EXPECT_EQ(kept_page_bytes(), kept);
  }
  release_idle_pages(now);
  EXPECT_EQ(kept_page_bytes(), kept);
  an_interval_later();
  EXPECT_EQ(kept_page_bytes(), 0u);
}

TEST_F(LargeBlock, is_kept_up_to_a_limit) {
  {
    std::vector<Block> many;
    for (int i = 0; i < 100; ++i) many.push_back(Block::allocate(kMebibyte));
  }
  EXPECT_LE(kept_page_bytes(), kMostKeptBytes);
  EXPECT_GT(kept_page_bytes(), kMostKeptBytes / 2);
}

TEST_F(LargeBlock, belongs_to_one_of_several_threads) {
  const auto work = [](int thread) {
    for (int i = 0; i < 2000; ++i) {
      const Block block = Block::allocate(static_cast<std::size_t>(70'000 + i % 5 * 9'000));
      *block.data() = static_cast<std::byte>(thread);
      if (i % 100 == 0) release_kept_pages();
      EXPECT_EQ(*block.data(), static_cast<std::byte>(thread));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& each : threads) each.join();
  release_kept_pages();
  EXPECT_EQ(kept_page_bytes(), 0u);
}

}  // namespace
}  // namespace stag
