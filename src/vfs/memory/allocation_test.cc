#include <gtest/gtest.h>

#include "testing/counted_new.h"
#include "vfs/memory/file_data.h"

namespace stag::vfs::memory {
namespace {

Buffer block_of(std::size_t size) {
  return Block::allocate(size).freeze(size);
}

TEST(FileData, takes_nothing_from_the_heap_when_written_again_block_by_block) {
  constexpr std::size_t kSize = 64 << 10;
  constexpr std::uint64_t kBlocks = 4;
  const Rope blocks[] = {Rope(block_of(kSize)), Rope(block_of(kSize))};
  FileData data;
  const auto write = [&](const Rope& block) {
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      Replaced replaced;
      data.write(i * kSize, block, replaced);
    }
  };
  write(blocks[0]);
  const std::size_t before = testing::heap_allocations.load();
  for (int i = 0; i < 10; ++i) write(blocks[i % 2]);
  EXPECT_EQ(testing::heap_allocations.load(), before);
  EXPECT_EQ(data.stored(), kBlocks * kSize);
  const Rope read = data.read(0, kBlocks * kSize);
  ASSERT_EQ(read.pieces().size(), kBlocks);
  EXPECT_EQ(read.pieces()[0].data(), blocks[1].pieces()[0].data()) << "what was written last";
}

}  // namespace
}  // namespace stag::vfs::memory
