#include "base/key_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace stag {
namespace {

TEST(KeyTable, holds_what_a_map_would_hold_however_keys_collide) {
  KeyTable<std::uint32_t> table;
  std::map<std::uint32_t, std::uint32_t> expected;
  std::minstd_rand random(1);
  for (int step = 0; step < 20000; ++step) {
    const std::uint32_t key = random() % 4 * 0x01000000 + random() % 24;
    if (random() % 2 == 0) {
      EXPECT_EQ(table.take(key).has_value(), expected.erase(key) == 1);
    } else {
      table[key] = expected[key] = step;
    }
    ASSERT_EQ(table.size(), expected.size());
    const std::uint32_t other = random() % 4 * 0x01000000 + random() % 24;
    const auto found = expected.find(other);
    ASSERT_EQ(table.contains(other), found != expected.end());
    if (found != expected.end()) {
      ASSERT_EQ(*table.find(other), found->second);
    }
  }
  std::size_t told = 0;
  table.for_each([&](std::uint32_t key, std::uint32_t value) {
    ++told;
    EXPECT_EQ(expected[key], value);
  });
  EXPECT_EQ(told, expected.size());
}

}  // namespace
}  // namespace stag
