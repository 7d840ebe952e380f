#include "net/interfaces.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stag::net {
namespace {

TEST(Interfaces, have_the_addresses_by_which_this_machine_reaches_itself) {
  const auto all = interface_addresses();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [](const Address& each) { return each.host == "127.0.0.1"; }));
  for (const Address& each : all) EXPECT_EQ(each.port, 0);
}

}  // namespace
}  // namespace stag::net
