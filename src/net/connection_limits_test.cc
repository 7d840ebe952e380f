#include "net/connection_limits.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace stag::net {
namespace {

Reason taking(ConnectionLimits& places, const char* host) {
  const auto place = places.take({host, 1});
  return place ? Reason::None : place.error();
}

TEST(ConnectionLimits, count_the_connections_of_each_address_apart) {
  const auto places = ConnectionLimits::make(3, 2);
  auto first = places->take({"192.0.2.1", 1});
  auto second = places->take({"192.0.2.1", 2});
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::TooManyConnectionsOfPeer);
  EXPECT_EQ(places->taken(), 2u);
  EXPECT_TRUE(places->has_its_share({"192.0.2.1", 3}));
  std::optional other(*places->take({"192.0.2.2", 1}));
  EXPECT_EQ(taking(*places, "192.0.2.3"), Reason::TooManyConnections);
  EXPECT_FALSE(places->has_its_share({"192.0.2.2", 2}));
  EXPECT_FALSE(places->has_its_share({"192.0.2.3", 1}));
  *first = nullptr;
  EXPECT_EQ(taking(*places, "192.0.2.3"), Reason::None);
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::None);
  other.reset();
  *second = nullptr;
  EXPECT_EQ(places->taken(), 0u);
}

TEST(ConnectionLimits, that_change_hold_for_who_comes_then) {
  const auto places = ConnectionLimits::make(4, 2);
  const auto first = places->take({"192.0.2.1", 1});
  const auto second = places->take({"192.0.2.1", 2});
  places->change(4, 1);
  EXPECT_EQ(places->taken(), 2u);
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::TooManyConnectionsOfPeer);
  EXPECT_EQ(taking(*places, "192.0.2.2"), Reason::None);
  places->change(4, 0);
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::None) << "usual(4), which is all";
  places->change(2, 2);
  EXPECT_EQ(taking(*places, "192.0.2.2"), Reason::TooManyConnections);
}

TEST(ConnectionLimits, are_usually_a_quarter_but_enough_for_a_client) {
  EXPECT_EQ(ConnectionLimits::usual(16384), 4096u);
  EXPECT_EQ(ConnectionLimits::usual(20), 8u);
  EXPECT_EQ(ConnectionLimits::usual(2), 2u);
  const auto places = ConnectionLimits::make(100, 0);
  std::vector<ConnectionLimits::Place> taken;
  for (int i = 0; i < 25; ++i) taken.push_back(*places->take({"192.0.2.1", 1}));
  EXPECT_EQ(taking(*places, "192.0.2.1"), Reason::TooManyConnectionsOfPeer);
}

TEST(ConnectionLimits, outlive_their_listener) {
  auto places = ConnectionLimits::make(1, 1);
  const ConnectionLimits::Place place = *places->take({"192.0.2.1", 1});
  places = nullptr;
}

}  // namespace
}  // namespace stag::net
