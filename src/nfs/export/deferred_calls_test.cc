#include "nfs/export/deferred_calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "rpc/connection.h"

namespace stag::nfs {
namespace {

rpc::Origin origin_at(const char* host) {
  rpc::Origin origin;
  origin.peer = {host, 700};
  origin.connection = std::make_shared<rpc::Connection>();
  return origin;
}

TEST(DeferredCalls, are_few_of_a_connection_of_an_address_and_in_all) {
  DeferredCalls calls;
  calls.limit({2, 3, 4});
  const rpc::Origin one = origin_at("192.0.2.1"), another = origin_at("192.0.2.1"),
                    far = origin_at("192.0.2.2"), farther = origin_at("192.0.2.3");
  std::vector<DeferredCalls::Place> places;
  const auto enters = [&](const rpc::Origin& origin) {
    auto place = calls.enter(origin);
    if (place) places.push_back(*std::move(place));
    return place.has_value();
  };
  EXPECT_TRUE(enters(one) && enters(one));
  EXPECT_FALSE(enters(one)) << "of its connection";
  EXPECT_TRUE(enters(another));
  EXPECT_FALSE(enters(another)) << "of its address";
  EXPECT_TRUE(enters(far));
  EXPECT_FALSE(enters(farther)) << "in all";
  places.clear();
  EXPECT_TRUE(enters(farther) && enters(one) && enters(one) && enters(another));
}

TEST(DeferredCalls, have_a_connection) {
  rpc::Origin nowhere;
  EXPECT_FALSE(DeferredCalls().enter(nowhere).has_value());
}

}  // namespace
}  // namespace stag::nfs
