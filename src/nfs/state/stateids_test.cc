// Stateids as such: who has one finds no other, and one of an earlier start is told from one that
// never was.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

class Nfs4Stateids : public ::testing::Test {
 protected:
  // What stands in four bytes, so much larger.
  static Stateid beside(Stateid stateid, std::size_t at, std::uint32_t more) {
    store_be(stateid.other.data() + at, load_be<std::uint32_t>(stateid.other.data() + at) + more);
    return stateid;
  }
  Status held(const Stateid& stateid) const { return world.files.holder_of(stateid).status; }

  World world{7};
  const testing::Client client = world.client("client"), victim = world.client("victim");
};

TEST_F(Nfs4Stateids, are_found_by_no_client_that_counts_from_its_own) {
  for (std::uint64_t file = 0; file < 200; ++file) world.open(victim, file);
  const Stateid own = world.open(client, 200).stateid;
  for (std::uint64_t file = 201; file < 400; ++file) world.open(victim, file);
  ASSERT_EQ(held(own), Status::Ok);
  for (const std::size_t at : {2u, 4u, 6u, 8u})
    for (std::uint32_t distance = 1; distance < 10000; ++distance)
      for (const std::uint32_t more : {distance, 0 - distance})
        ASSERT_EQ(held(beside(own, at, more)), Status::BadStateid) << at << ", " << more;
}

TEST_F(Nfs4Stateids, have_nothing_in_common_but_their_place) {
  std::set<std::uint32_t> high, low;
  for (std::uint64_t file = 0; file < 1000; ++file) {
    const Stateid stateid = world.open(victim, file).stateid;
    high.insert(load_be<std::uint32_t>(stateid.other.data() + 6));
    low.insert(load_be<std::uint32_t>(stateid.other.data() + 8));
  }
  EXPECT_EQ(high.size(), 1000u);
  EXPECT_EQ(low.size(), 1000u);
}

TEST_F(Nfs4Stateids, depend_on_the_key_and_on_the_start) {
  Files other({.epoch = 7, .key = {std::byte{1}}, .limits = {}}), later({.epoch = 8, .limits = {}});
  const OpenArgs args{World::file(1), bytes_of("owner"), kShareRead, 0, false};
  const Stateid stateid = world.files.open(args, client.life).stateid;
  for (Files* each : {&other, &later}) {
    const Stateid theirs = each->open(args, client.life).stateid;
    EXPECT_FALSE(std::ranges::equal(Bytes(stateid.other).last(6), Bytes(theirs.other).last(6)));
  }
}

TEST_F(Nfs4Stateids, are_STALE_of_an_earlier_start_and_BAD_where_they_never_were) {
  Stateid stateid = world.open(client, 1).stateid;
  EXPECT_EQ(held(stateid), Status::Ok);
  EXPECT_EQ(held(World(6).open(client, 1).stateid), Status::StaleStateid);
  EXPECT_EQ(held(World(7 + 256).open(client, 1).stateid), Status::StaleStateid);
  stateid.other[11] ^= std::byte{1};
  EXPECT_EQ(held(stateid), Status::BadStateid);
}

// Places are used again once a thousand have been: no stateid comes back with its place.
TEST_F(Nfs4Stateids, mean_nothing_once_their_place_is_another_ones) {
  std::set<decltype(Stateid::other)> former;
  for (int i = 0; i < 3000; ++i) {
    const Stateid stateid = world.open(client, 1).stateid;
    ASSERT_TRUE(former.insert(stateid.other).second);
    world.files.close(World::file(1), stateid, *client.life);
    ASSERT_EQ(held(stateid), Status::BadStateid);
  }
  for (const auto& other : former) ASSERT_EQ(held({0, other}), Status::BadStateid);
}

}  // namespace
}  // namespace stag::nfs::state
