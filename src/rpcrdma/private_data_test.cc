#include "rpcrdma/private_data.h"

#include <gtest/gtest.h>

#include "rpcrdma/golden_test.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using testing::copy;
using testing::from_hex;
using testing::Message;

TEST(PrivateData, is_identifier_version_flags_and_the_two_sizes) {
  PROVES("R8797-4-f", "R8797-4-g", "R8797-4-i", "R8797-4-k");
  for (const bool invalidation : {true, false}) {
    const PrivateData own{4096, 8192, invalidation};
    const Message octets = from_hex(invalidation ? "f6ab0e18 01 01 03 07" : "f6ab0e18 01 00 03 07");
    EXPECT_EQ(copy(encode_private_data(own)), octets);
    EXPECT_EQ(decode_private_data(octets), own);
  }
}

TEST(PrivateData, sizes_are_codes_of_1024_bytes_never_rounded_up) {
  PROVES("R8797-4.2-a", "R8797-4.2-b", "R8797-4.2-c");
  for (std::uint32_t code = 0; code < 256; ++code) {
    const std::uint32_t size = (code + 1) * 1024;
    const auto octets = encode_private_data({size, size, false});
    EXPECT_EQ(octets[6], std::byte(code));
    EXPECT_EQ(decode_private_data(octets), (PrivateData{size, size, false}));
  }
  const auto octets = encode_private_data({5000, 300000, false});
  EXPECT_EQ(octets[6], std::byte{3});
  EXPECT_EQ(octets[7], std::byte{255});
}

TEST(PrivateData, is_found_at_any_offset) {
  PROVES("R8797-5.2-a", "R8797-5.2-b", "R8797-5.2-d");
  for (std::size_t offset : {0, 1, 2, 3, 5, 13, 200, 244}) {
    Message field(offset, std::byte{0xf6});
    const Message data = from_hex("f6ab0e18 01 01 03 07 99");
    field.insert(field.end(), data.begin(), data.end());
    EXPECT_EQ(decode_private_data(field), (PrivateData{4096, 8192, true})) << offset;
  }
}

TEST(PrivateData, that_does_not_conform_is_as_good_as_none) {
  PROVES("R8797-5.2-c", "R8797-5.2-e", "R8797-5.2-f", "R8797-4-h");
  for (const char* field :
       {"", "f6ab0e19 01 01 03 07", "f6ab0e18 00 01 03 07", "f6ab0e18 02 01 03 07 0102 0304",
        "f6ab0e18 ff 01 03 07", "f6ab0e18 01 01 03", "f6ab0e18", "00000000 f6ab0e18 01 01 03"})
    EXPECT_EQ(decode_private_data(from_hex(field)), std::nullopt) << field;
}

TEST(PrivateData, does_not_hide_a_conforming_one_behind_another_version) {
  PROVES("R8797-6-a");
  EXPECT_EQ(decode_private_data(from_hex("f6ab0e18 02 01 ff ff")), std::nullopt);
  EXPECT_EQ(decode_private_data(from_hex("f6ab0e18 02 01 ff ff f6ab0e18 01 00 00 01")),
            (PrivateData{1024, 2048, false}));
}

TEST(PrivateData, reserved_bits_are_ignored) {
  PROVES("R8797-4-j");
  EXPECT_EQ(decode_private_data(from_hex("f6ab0e18 01 fe 03 07")),
            (PrivateData{4096, 8192, false}));
  EXPECT_EQ(decode_private_data(from_hex("f6ab0e18 01 ff 03 07")), (PrivateData{4096, 8192, true}));
}

TEST(Thresholds, are_the_smaller_of_what_one_sends_and_the_other_receives) {
  PROVES("R8166-3.3.2-a", "R8166-3.3.2-b", "R8797-4.2-d", "R8797-4.2-e");
  const PrivateData client{8192, 2048, false};
  const PrivateData server{16384, 4096, false};
  const Thresholds at_client = negotiate(client, server);
  const Thresholds at_server = negotiate(server, client);
  EXPECT_EQ(at_client.send, 4096u);
  EXPECT_EQ(at_client.receive, 2048u);
  EXPECT_EQ(at_server.send, 2048u);
  EXPECT_EQ(at_server.receive, 4096u);
}

TEST(Thresholds, are_1024_bytes_when_the_peer_says_nothing) {
  PROVES("R8797-5.1-a", "R8797-5.1-b", "R8166-3.3.3-g");
  const Thresholds thresholds = negotiate({65536, 65536, true}, std::nullopt);
  EXPECT_EQ(thresholds.send, 1024u);
  EXPECT_EQ(thresholds.receive, 1024u);
  EXPECT_FALSE(thresholds.may_invalidate);
}

TEST(Thresholds, use_the_size_that_was_told_and_not_the_odd_bytes_above_it) {
  EXPECT_EQ(negotiate({5000, 7000, false}, PrivateData{65536, 65536, false}),
            (Thresholds{4096, 6144, false, false}));
}

TEST(PrivateData, is_passed_over_when_it_is_of_another_kind) {
  PROVES("R8797-5-a");
  Message field;
  std::uint32_t chance = 12345;
  for (int i = 0; i < 500; ++i) {
    chance = chance * 1664525 + 1013904223;
    field.push_back(static_cast<std::byte>(chance >> 24));
    EXPECT_EQ(decode_private_data(field), std::nullopt);
  }
}

TEST(Thresholds, allow_Send_With_Invalidate_only_when_both_sides_set_R) {
  PROVES("R8797-3.2-c", "R8797-4.1-c");
  const PrivateData clear{4096, 4096, false};
  const PrivateData set{4096, 4096, true};
  EXPECT_TRUE(negotiate(set, set).may_invalidate);
  EXPECT_FALSE(negotiate(set, clear).may_invalidate);
  EXPECT_FALSE(negotiate(clear, set).may_invalidate);
  EXPECT_FALSE(negotiate(clear, clear).may_invalidate);
  // A peer may do it although its own R is clear.
  EXPECT_TRUE(negotiate(set, clear).may_be_invalidated);
  EXPECT_FALSE(negotiate(clear, set).may_be_invalidated);
}

}  // namespace
}  // namespace stag::rpcrdma
