#include "bench/raw/fpdu_blocks.h"

#include <gtest/gtest.h>

#include <numeric>

#include "bench/load/load.h"
#include "bench/raw/raw_peer.h"

namespace stag::bench {
namespace {

constexpr std::size_t kBlock = 1 << 20;

TEST(FpduBlocks, HoldEveryByteOfABlockOnceBetweenHeaders) {
  FpduBlocks blocks(kBlock);
  const std::span<iovec> pieces = blocks.next();
  const std::byte* expected = nullptr;
  std::size_t payload = 0;
  for (std::size_t i = 0; i < pieces.size(); i += 2) {
    EXPECT_EQ(pieces[i].iov_len, 20u);  // CRC, length and header
    const auto* begin = static_cast<const std::byte*>(pieces[i + 1].iov_base);
    EXPECT_TRUE(expected == nullptr || begin == expected);
    expected = begin + pieces[i + 1].iov_len;
    payload += pieces[i + 1].iov_len;
  }
  EXPECT_EQ(payload, kBlock);
  EXPECT_EQ(pieces.size(), 2u * 4 * 5);  // four RDMA Writes of five FPDUs each
}

TEST(FpduBlocks, GoThroughAsMuchMemoryAsTheLoads) {
  FpduBlocks blocks(kBlock);
  const auto begin_of = [](std::span<iovec> pieces) {
    return static_cast<const std::byte*>(pieces[1].iov_base);
  };
  const std::byte* first = begin_of(blocks.next());
  for (std::size_t at = kBlock; at < LoadGenerator::kBulkBytes; at += kBlock)
    EXPECT_EQ(begin_of(blocks.next()), first + at);
  EXPECT_EQ(begin_of(blocks.next()), first);
}

// More than a socket takes at once, so that ranges are left in the middle.
TEST(RawPeer, StreamsBlocksInFpdusBothWays) {
  auto peer = RawPeer::start();
  ASSERT_TRUE(peer) << peer.error();
  const std::vector<Sample> samples = {peer->stream_in(kBlock, 0.02, true),
                                       peer->stream_out(kBlock, 0.02, true),
                                       peer->stream_in(kBlock, 0.02)};
  for (const Sample& sample : samples) {
    EXPECT_GT(sample.operations, 0u);
    EXPECT_EQ(sample.bytes, sample.operations * kBlock);
  }
}

}  // namespace
}  // namespace stag::bench
