#include "nfs/lock/range_locks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stag::nfs::lock {
namespace {

struct Anybody {};

// The holders that a list without any index finds.
class List {
 public:
  void insert(const Range& range, const Anybody* holder) { entries_.push_back({range, holder}); }
  std::pair<Range, const Anybody*> take(std::size_t at) {
    const auto entry = entries_[at];
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
    return entry;
  }
  bool overlapped(const Range& range, const Anybody* except, bool own) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return (entry.second == except) == own && entry.first.overlaps(range);
    });
  }
  std::size_t size() const { return entries_.size(); }

 private:
  std::vector<std::pair<Range, const Anybody*>> entries_;
};

TEST(RangeIndex, finds_what_a_list_finds_however_ranges_come_and_go) {
  std::mt19937 random(1);
  const std::array<Anybody, 5> holders{};
  for (const std::uint64_t longest : {4, 200, 100'000}) {
    RangeIndex<Anybody> index;
    List list;
    for (int step = 0; step < 6000; ++step) {
      const std::uint64_t first = random() % 100'000;
      const Range range{first, first + random() % longest};
      const Anybody* holder = &holders[random() % holders.size()];
      const auto* found = index.find_other(range, holder);
      ASSERT_EQ(found != nullptr, list.overlapped(range, holder, false));
      if (found != nullptr) {
        ASSERT_NE(found->holder, holder);
        ASSERT_TRUE(found->range.overlaps(range));
      }
      // Grows for the first half, shrinks in the second.
      if (random() % 4 != 0 && step < 4000) {
        if (list.overlapped(range, holder, true)) continue;
        index.insert(range, holder);
        list.insert(range, holder);
      } else if (list.size() > 0) {
        const auto [gone, whose] = list.take(random() % list.size());
        index.erase(gone, whose);
      }
    }
  }
}

TEST(RangeIndex, tells_ranges_with_one_beginning_apart_by_their_holder) {
  const std::array<Anybody, 400> holders{};
  RangeIndex<Anybody> index;
  for (const Anybody& holder : holders) index.insert({7, 7}, &holder);
  for (const Anybody& holder : holders) {
    if (&holder == &holders.back()) break;
    EXPECT_NE(index.find_other({7, 7}, &holder), nullptr);
    index.erase({7, 7}, &holder);
  }
  EXPECT_EQ(index.find_other({7, 7}, &holders.back()), nullptr);
  EXPECT_NE(index.find_other({7, 7}, nullptr), nullptr);
}

OwnerPtr owner_called(const std::string& name) {
  return std::make_shared<Owner>(Owner{{"192.0.2.1", name}, "oh", 1});
}

TEST(RangeLocks, plan_what_setting_a_range_replaces) {
  const OwnerPtr owner = owner_called("a");
  RangeLocks locks;
  locks.apply(locks.plan(owner, {0, 9}, true));
  locks.apply(locks.plan(owner, {20, 29}, true));
  const auto bridge = locks.plan(owner, {10, 19}, true);
  EXPECT_EQ(bridge.gone.size(), 2u);
  ASSERT_EQ(bridge.come.size(), 1u);
  EXPECT_EQ(bridge.come[0].range, (Range{0, 29}));
  EXPECT_EQ(locks.size(), 2u) << "a plan changes nothing";
  locks.apply(bridge);
  locks.apply(locks.plan(owner, {5, 6}, false));
  EXPECT_EQ(locks.size(), 3u);
  const std::vector<Held> within = locks.of(*owner, {4, 5});
  ASSERT_EQ(within.size(), 2u);
  EXPECT_EQ(within[0].range, (Range{4, 4}));
  EXPECT_FALSE(within[1].exclusive);
  locks.apply(locks.plan(owner, {0, Range::kEnd}, std::nullopt));
  EXPECT_EQ(locks.size(), 0u);
  EXPECT_EQ(locks.holder(*owner), nullptr);
}

TEST(RangeLocks, release_all_of_an_owner_and_nothing_of_others) {
  const OwnerPtr a = owner_called("a"), b = owner_called("b");
  RangeLocks locks;
  for (std::uint64_t byte = 0; byte < 1000; byte += 2) {
    locks.apply(locks.plan(a, {byte, byte}, false));
    locks.apply(locks.plan(b, {byte, byte}, false));
  }
  std::vector<std::size_t> released;
  locks.release([](const Owner& one) { return one.client.name == "a"; },
                [&](const Owner&, std::size_t count) { released.push_back(count); });
  EXPECT_EQ(released, std::vector<std::size_t>{500});
  EXPECT_EQ(locks.size(), 500u);
  EXPECT_FALSE(locks.conflict(*b, {0, 1000}, true));
  EXPECT_TRUE(locks.conflict(*a, {500, 500}, true));
  EXPECT_FALSE(locks.conflict(*a, {501, 501}, true));
}

TEST(RangeLocks, are_of_clients_at_some_address) {
  const auto at = [](const char* address) {
    return std::make_shared<Owner>(Owner{{address, "host"}, "owner", 1});
  };
  const OwnerPtr here = at("192.0.2.1"), there = at("192.0.2.2");
  RangeLocks locks;
  EXPECT_EQ(locks.locker_at("192.0.2.1"), std::nullopt);
  locks.apply(locks.plan(here, {0, 9}, true));
  locks.apply(locks.plan(there, {20, 29}, true));
  EXPECT_EQ(locks.locker_at("192.0.2.2"), "192.0.2.2");
  EXPECT_EQ(locks.locker_at("192.0.2.1"), "192.0.2.1");
  locks.apply(locks.plan(here, {0, 9}, std::nullopt));
  EXPECT_EQ(locks.locker_at("192.0.2.1"), "192.0.2.2");
}

}  // namespace
}  // namespace stag::nfs::lock
