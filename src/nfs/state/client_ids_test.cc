// ClientIds: another one each time, known again, and none by which another is found.
#include "nfs/state/client_ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "nfs/state/clients.h"

namespace stag::nfs::state {
namespace {

constexpr SipKey kKey{std::byte{1}};

std::vector<ClientId> made(ClientIds& ids, std::size_t count) {
  std::vector<ClientId> all(count);
  std::ranges::generate(all, [&] { return ids.next(); });
  return all;
}

TEST(Nfs4ClientIds, are_in_their_shard_and_known_again) {
  ClientIds ids(63, 7, kKey);
  for (const ClientId clientid : made(ids, 1000)) {
    EXPECT_EQ(clientid % Clients::kShards, 63u);
    EXPECT_TRUE(ids.given(clientid));
  }
}

TEST(Nfs4ClientIds, are_far_from_one_another) {
  ClientIds ids(5, 7, kKey);
  std::vector<ClientId> all = made(ids, 10000);
  std::ranges::sort(all);
  for (std::size_t i = 1; i < all.size(); ++i) ASSERT_GT(all[i] - all[i - 1], 1u << 24) << i;
}

TEST(Nfs4ClientIds, are_not_known_unless_they_were_given) {
  ClientIds ids(5, 7, kKey), next(5, 7, kKey);
  const ClientId clientid = ids.next();
  // The bits below are of the shard.
  for (int bit = 6; bit < 64; ++bit) EXPECT_FALSE(ids.given(clientid ^ ClientId{1} << bit)) << bit;
  made(next, 1);
  EXPECT_FALSE(ids.given(next.next())) << "the next one";
  EXPECT_FALSE(ids.given(0));
}

TEST(Nfs4ClientIds, differ_by_start_and_by_key) {
  ClientIds ids(5, 7, kKey), later(5, 8, kKey), other(5, 7, {});
  for (int i = 0; i < 100; ++i) {
    const ClientId clientid = ids.next();
    for (ClientIds* each : {&later, &other}) {
      EXPECT_NE(each->next(), clientid);
      EXPECT_FALSE(each->given(clientid));
    }
  }
}

// A client that has an ID of a shard knows about how many the shards beside it have given, so equal
// upper bits would let it guess theirs.
TEST(Nfs4ClientIds, have_nothing_in_common_in_two_shards) {
  ClientIds ids(5, 7, kKey), beside(4, 7, kKey);
  for (int i = 0; i < 100; ++i) EXPECT_NE(ids.next() >> 6, beside.next() >> 6);
}

}  // namespace
}  // namespace stag::nfs::state
