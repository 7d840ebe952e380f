#include "nfs/state/opens_by_share.h"

#include <gtest/gtest.h>

#include <deque>

#include "nfs/state/types.h"

namespace stag::nfs::state {
namespace {

// Bits that count how often they are looked at.
struct CountedBits {
  std::uint32_t bits = 0;
  int* looked_at = nullptr;
  operator std::uint32_t() const { return ++*looked_at, bits; }
};

struct SharedOpen {
  CountedBits access, deny;
  Link<SharedOpen> of_file{};
};

class Nfs4OpensByShare : public ::testing::Test {
 protected:
  SharedOpen& put(std::uint32_t access, std::uint32_t deny) {
    SharedOpen& open = all.emplace_back(SharedOpen{{access, &looked_at}, {deny, &looked_at}});
    opens.put(open);
    return open;
  }
  SharedOpen* conflict(std::uint32_t access, std::uint32_t deny,
                       const SharedOpen* except = nullptr) {
    return opens.find_conflict(access, deny,
                               [&](const SharedOpen& one) { return ++looked_at, &one != except; });
  }

  std::deque<SharedOpen> all;
  OpensByShare<SharedOpen> opens;
  int looked_at = 0;
};

TEST_F(Nfs4OpensByShare, finds_exactly_those_in_the_way) {
  for (std::uint32_t one = 0; one < 16; ++one)
    for (std::uint32_t other = 0; other < 16; ++other) {
      SharedOpen& open = put(one >> 2, one & 3);
      const bool conflicts = ((one >> 2 & other) | (one & other >> 2)) != 0;
      EXPECT_EQ(conflict(other >> 2, other & 3), conflicts ? &open : nullptr) << one << other;
      opens.take(open);
      EXPECT_EQ(conflict(other >> 2, other & 3), nullptr);
    }
}

TEST_F(Nfs4OpensByShare, looks_at_no_open_that_is_not_in_the_way) {
  SharedOpen& denies = put(kShareWrite, kShareRead);
  for (int i = 0; i < 10000; ++i) put(kShareWrite, 0);
  looked_at = 0;
  EXPECT_EQ(conflict(kShareRead, 0), &denies);
  EXPECT_EQ(conflict(kShareRead, 0, &denies), nullptr) << "its own";
  EXPECT_EQ(looked_at, 2);
  SharedOpen& last = put(kShareRead, kShareBoth);
  EXPECT_EQ(conflict(kShareRead, 0, &denies), &last);
}

TEST_F(Nfs4OpensByShare, yields_the_next_one_of_a_kind_once_the_first_is_gone) {
  SharedOpen& first = put(kShareRead, kShareWrite);
  SharedOpen& second = put(kShareRead, kShareWrite);
  EXPECT_EQ(conflict(kShareWrite, 0), &second);
  opens.take(second);
  EXPECT_EQ(conflict(kShareWrite, 0), &first);
  opens.take(first);
  EXPECT_EQ(conflict(kShareWrite, 0), nullptr);
}

}  // namespace
}  // namespace stag::nfs::state
