#include "vfs/ceph/handle.h"

#include <gtest/gtest.h>

namespace stag::vfs::ceph {
namespace {

TEST(CephHandle, says_which_object_and_fits_into_those_of_version_2) {
  const ObjectKey live{0x10000000001, 1'700'000'000'123'456'789};
  EXPECT_EQ(key_of(handle_of(live)), live);
  EXPECT_LE(handle_of(live).size(), 19u);
  ObjectKey seen = live;
  seen.snapshot = 3;
  EXPECT_EQ(key_of(handle_of(seen)), seen);
  EXPECT_FALSE(handle_of(seen) == handle_of(live));
  seen.snapshot = ~std::uint64_t{0};
  EXPECT_EQ(key_of(handle_of(seen)), seen) << "the directory of snapshots";
}

TEST(CephHandle, is_nothing_else) {
  const Handle live = handle_of({1, 2});
  for (std::size_t size = 0; size < live.size(); ++size)
    EXPECT_EQ(key_of(*Handle::from(live.bytes().first(size))), std::nullopt) << size;
  const Handle seen = handle_of({1, 2, 3});
  for (std::size_t size = 0; size < seen.size(); ++size)
    EXPECT_EQ(key_of(*Handle::from(seen.bytes().first(size))), std::nullopt) << size;
  std::array<std::byte, 25> twice{};
  twice[0] = std::byte{2};
  store_be(&twice[17], ObjectKey::kNoSnapshot);
  EXPECT_EQ(key_of(*Handle::from(twice)), std::nullopt) << "an object has one handle";
}

}  // namespace
}  // namespace stag::vfs::ceph
