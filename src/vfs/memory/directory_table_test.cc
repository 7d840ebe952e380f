#include "vfs/memory/directory_table.h"

#include <gtest/gtest.h>

#include <unordered_set>
#include <vector>

namespace stag::vfs::memory {
namespace {

// libstdc++ hashes bytes with MurmurHash64A and a seed everybody knows. Every step of it can be
// undone, so to any first half of a name belongs a second half that gives the hash wanted.
class Collider {
 public:
  std::string name(std::uint64_t first) const {
    std::string name(16, '\0');
    const std::uint64_t start = 0xc70f6907u ^ (name.size() * kMul);
    const std::uint64_t second = unmix(((start ^ mix(first)) * kMul) ^ kWanted);
    std::memcpy(name.data(), &first, 8);
    std::memcpy(name.data() + 8, &second, 8);
    return name;
  }

 private:
  static constexpr std::uint64_t kMul = 0xc6a4a7935bd1e995u;
  static constexpr std::uint64_t kWanted = 42;
  static std::uint64_t shift(std::uint64_t value) { return value ^ (value >> 47); }
  static std::uint64_t inverse() {
    std::uint64_t guess = kMul;
    for (int i = 0; i < 6; ++i) guess *= 2 - kMul * guess;
    return guess;
  }
  static std::uint64_t mix(std::uint64_t word) { return shift(word * kMul) * kMul; }
  static std::uint64_t unmix(std::uint64_t word) { return shift(word * inverse()) * inverse(); }
};

TEST(DirectoryTable, scatters_names_that_collide_under_a_hash_without_a_key) {
  const Collider collider;
  std::unordered_set<std::size_t> known;
  std::unordered_set<std::size_t> keyed;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    const std::string name = collider.name(i);
    known.insert(std::hash<std::string_view>()(name));
    keyed.insert(NameHash()(name));
  }
#if defined(__GLIBCXX__) && __SIZEOF_SIZE_T__ == 8
  EXPECT_EQ(known.size(), 1u);
#endif
  EXPECT_EQ(keyed.size(), 1000u);
}

TEST(DirectoryTable, depends_on_its_key) {
  const SipKey one{std::byte{1}};
  const SipKey two{std::byte{2}};
  EXPECT_EQ(NameHash(one)("name"), NameHash(one)("name"));
  EXPECT_NE(NameHash(one)("name"), NameHash(two)("name"));
  EXPECT_NE(NameHash()("name"), NameHash(one)("name"));
}

}  // namespace
}  // namespace stag::vfs::memory
