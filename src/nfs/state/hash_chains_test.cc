#include "nfs/state/hash_chains.h"

#include <gtest/gtest.h>

#include <deque>

namespace stag::nfs::state {
namespace {

// Counts how often it is looked at.
struct CountedHash {
  std::uint64_t value = 0;
  std::uint64_t* reads = nullptr;
  operator std::uint64_t() const { return ++*reads, value; }
};
struct Counted {
  CountedHash hash;
  Counted* chain = nullptr;
};

TEST(HashChains, are_short_within_a_shard) {
  constexpr std::uint64_t kRecords = 4096;
  constexpr std::uint64_t kShard = 5;
  std::uint64_t reads = 0;
  std::deque<Counted> records;
  HashChains<Counted> chains;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    records.push_back({{i * kFileShards + kShard, &reads}});
    chains.insert(records.back());
  }
  reads = 0;
  for (Counted& record : records) {
    const auto same = [&record](const Counted& found) { return &found == &record; };
    ASSERT_EQ(chains.find(record.hash.value, same), &record);
  }
  EXPECT_LE(reads, 4 * kRecords);
  for (Counted& record : records) chains.erase(record);
  EXPECT_EQ(chains.size(), 0u);
}

}  // namespace
}  // namespace stag::nfs::state
