#include "base/network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stag {
namespace {

bool inside(const char* network, const char* address) {
  const auto in = IpNetwork::parse(network);
  const auto at = IpAddress::parse(address);
  EXPECT_TRUE(in && at) << network << " " << address;
  return in && at && in->contains(*at);
}

TEST(IpAddress, is_read_in_all_its_text_forms) {
  const auto v6 = [](std::uint64_t high, std::uint64_t low) { return IpAddress{high, low}; };
  EXPECT_EQ(IpAddress::parse("192.0.2.1"), v6(0, 0xffffc0000201));
  EXPECT_EQ(IpAddress::parse("0.0.0.0"), v6(0, 0xffff00000000));
  EXPECT_EQ(IpAddress::parse("::"), v6(0, 0));
  EXPECT_EQ(IpAddress::parse("::1"), v6(0, 1));
  EXPECT_EQ(IpAddress::parse("2001:db8::"), v6(0x20010db800000000, 0));
  EXPECT_EQ(IpAddress::parse("2001:DB8::8:800:200c:417a"),
            v6(0x20010db800000000, 0x00080800200c417a));
  EXPECT_EQ(IpAddress::parse("1:2:3:4:5:6:7:8"), v6(0x0001000200030004, 0x0005000600070008));
  EXPECT_EQ(IpAddress::parse("1:2:3:4:5:6:7::"), v6(0x0001000200030004, 0x0005000600070000));
  EXPECT_EQ(IpAddress::parse("::2:3:4:5:6:7:8"), v6(0x0000000200030004, 0x0005000600070008));
  EXPECT_EQ(IpAddress::parse("64:ff9b::192.0.2.33"), v6(0x0064ff9b00000000, 0xc0000221));
  EXPECT_EQ(IpAddress::parse("fe80::1%eth0"), v6(0xfe80000000000000, 1));
}

TEST(IpAddress, is_the_IPv4_address_that_an_IPv6_one_contains) {
  EXPECT_EQ(IpAddress::parse("::ffff:192.0.2.1"), IpAddress::parse("192.0.2.1"));
  EXPECT_EQ(IpAddress::parse("::ffff:c000:201"), IpAddress::parse("192.0.2.1"));
  EXPECT_TRUE(IpAddress::parse("192.0.2.1")->is_v4());
  EXPECT_FALSE(IpAddress::parse("::1")->is_v4());
}

TEST(IpAddress, refuses_any_other_text) {
  for (const char* text : {"",
                           "localhost",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.256",
                           "1.2.3.04",
                           "1.2.3.+4",
                           "1.2.3.-1",
                           "1..2.3",
                           ".1.2.3",
                           "1.2.3.",
                           " 1.2.3.4",
                           ":",
                           ":::",
                           "1::2::3",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1:2:3:4:5:6:7:8::",
                           "::1:2:3:4:5:6:7:8",
                           "12345::",
                           "g::",
                           "1:",
                           ":1",
                           "::1.2.3",
                           "1.2.3.4::",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "::1.2.3.4:5",
                           "%eth0"})
    EXPECT_FALSE(IpAddress::parse(text)) << text;
}

TEST(IpNetwork, holds_the_addresses_that_begin_alike) {
  EXPECT_TRUE(inside("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(inside("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(inside("192.0.2.77/26", "192.0.2.64"));
  EXPECT_FALSE(inside("192.0.2.77/26", "192.0.2.63"));
  EXPECT_TRUE(inside("192.0.2.0/255.255.254.0", "192.0.3.9"));
  EXPECT_TRUE(inside("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(inside("192.0.2.1", "192.0.2.0"));
  EXPECT_TRUE(inside("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(inside("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(inside("fe80::/10", "fe80::1%eth0"));
  EXPECT_TRUE(inside("2001:db8::/65", "2001:db8::7fff:0:0:1"));
  EXPECT_FALSE(inside("2001:db8::/65", "2001:db8::8000:0:0:1"));
}

TEST(IpNetwork, contains_addresses_of_its_own_family_only) {
  EXPECT_TRUE(inside("0.0.0.0/0", "192.0.2.1"));
  EXPECT_FALSE(inside("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(inside("::/0", "2001:db8::1"));
  EXPECT_FALSE(inside("::/0", "192.0.2.1"));
  EXPECT_TRUE(inside("192.0.2.0/24", "::ffff:192.0.2.9"));
}

TEST(IpNetwork, refuses_any_other_text) {
  for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                           "::/129", "::/ffff::", "10.0.0.0/255.0.255.0", "*", "example", "::1%lo"})
    EXPECT_FALSE(IpNetwork::parse(text)) << text;
}

TEST(IpNetworks, allow_all_peers_when_empty_and_else_only_those_inside) {
  EXPECT_TRUE(is_allowed({}, "anything"));
  const std::vector<IpNetwork> networks = {*IpNetwork::parse("10.0.0.0/8"),
                                           *IpNetwork::parse("::1")};
  EXPECT_TRUE(is_allowed(networks, "10.1.1.1"));
  EXPECT_TRUE(is_allowed(networks, "::1"));
  EXPECT_FALSE(is_allowed(networks, "192.0.2.1"));
  EXPECT_FALSE(is_allowed(networks, "no address"));
  EXPECT_FALSE(is_allowed(networks, ""));
}

}  // namespace
}  // namespace stag
