#include "nfs/state/range_modes.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace stag::nfs::state {
namespace {

constexpr std::size_t kBytes = 24;
using Expected = std::array<RangeMode, kBytes>;

Expected modes_of(const RangeModes& modes) {
  Expected bytes{};
  std::uint64_t next = 0;
  for (const RangeModes::Piece& piece : modes.within({0, kBytes - 1})) {
    EXPECT_EQ(piece.range.first, next) << "they are in order, without gaps";
    for (; next <= piece.range.last; ++next) bytes[next] = piece.mode;
  }
  EXPECT_EQ(next, kBytes);
  return bytes;
}

TEST(RangeModes, are_the_ones_set_last_for_each_byte) {
  std::minstd_rand random(7);
  RangeModes modes;
  Expected expected{};
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t first = random() % kBytes, last = first + random() % (kBytes - first);
    const auto mode = static_cast<RangeMode>(random() % 3);
    const bool raises = random() % 2 == 0;
    if (raises)
      modes.raise({first, last}, mode);
    else
      modes.set({first, last}, mode);
    for (std::uint64_t byte = first; byte <= last; ++byte)
      if (!raises || expected[byte] < mode) expected[byte] = mode;
    ASSERT_EQ(modes_of(modes), expected) << i;
  }
  modes.set({0, kBytes - 1}, RangeMode::None);
  EXPECT_TRUE(modes.empty());
}

TEST(RangeModes, reach_to_the_last_byte_of_all) {
  RangeModes modes;
  modes.set({10, Range::kEnd}, RangeMode::Shared);
  modes.set({Range::kEnd, Range::kEnd}, RangeMode::Exclusive);
  const auto found = modes.within({0, Range::kEnd});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].range, (Range{0, 9}));
  EXPECT_EQ(found[1].range, (Range{10, Range::kEnd - 1}));
  EXPECT_EQ(found[2].mode, RangeMode::Exclusive);
  modes.set({}, RangeMode::None);
  EXPECT_TRUE(modes.empty());
}

}  // namespace
}  // namespace stag::nfs::state
