#include "net/peer_places.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace stag::net {
namespace {

Reason taking(PeerPlaces& places, const char* host) {
  const auto place = places.take({host, 1});
  return place ? Reason::None : place.error();
}

TEST(PeerPlaces, are_shared_by_the_connections_of_one_address_only) {
  const auto places = PeerPlaces::make(3, 2);
  auto first = places->take({"192.0.2.1", 1});
  auto second = places->take({"192.0.2.1", 2});
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::TooManyConnectionsOfPeer);
  EXPECT_EQ(places->taken(), 2u);
  std::optional other(*places->take({"192.0.2.2", 1}));
  EXPECT_EQ(taking(*places, "192.0.2.3"), Reason::TooManyConnections);
  *first = nullptr;
  EXPECT_EQ(taking(*places, "192.0.2.3"), Reason::None);
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::None);
  other.reset();
  *second = nullptr;
  EXPECT_EQ(places->taken(), 0u);
}

TEST(PeerPlaces, are_usually_a_quarter_but_enough_for_a_client) {
  EXPECT_EQ(PeerPlaces::usual(16384), 4096u);
  EXPECT_EQ(PeerPlaces::usual(20), 8u);
  EXPECT_EQ(PeerPlaces::usual(2), 2u);
  const auto places = PeerPlaces::make(100, 0);
  std::vector<PeerPlaces::Place> taken;
  for (int i = 0; i < 25; ++i) taken.push_back(*places->take({"192.0.2.1", 1}));
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::TooManyConnectionsOfPeer);
}

TEST(PeerPlaces, outlive_their_listener) {
  auto places = PeerPlaces::make(1, 1);
  const PeerPlaces::Place place = *places->take({"192.0.2.1", 1});
  places = nullptr;
}

}  // namespace
}  // namespace stag::net
