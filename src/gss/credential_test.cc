// The data structures of RFC 2203 section 5, byte for byte and cut at every length.
#include "gss/credential.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "gss/sequence_window.h"

namespace stag::gss {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> made;
  for (const int value : values) made.push_back(static_cast<std::byte>(value));
  return made;
}

const std::vector<std::byte> kWire = bytes({0, 0, 0, 1,  // version
                                            0, 0, 0, 3,  // RPCSEC_GSS_DESTROY
                                            0, 0, 1, 2,  // seq_num
                                            0, 0, 0, 2,  // rpc_gss_svc_integrity
                                            0, 0, 0, 5,  // handle
                                            9, 8, 7, 6, 5, 0, 0, 0});

TEST(GssCredential, is_version_procedure_number_service_and_handle) {
  const auto credential = decode_credential(kWire);
  ASSERT_TRUE(credential);
  EXPECT_EQ(credential->version, 1u);
  EXPECT_EQ(credential->procedure, Procedure::DESTROY);
  EXPECT_EQ(credential->seq_num, 0x102u);
  EXPECT_EQ(credential->service, Service::integrity);
  EXPECT_EQ(credential->handle.size(), 5u);
  std::vector<std::byte> again(credential_size(5));
  encode_credential(*credential, again);
  EXPECT_EQ(again, kWire);
}

TEST(GssCredential, is_refused_when_it_is_cut_or_has_more_behind_it) {
  for (std::size_t length = 0; length < kWire.size(); ++length)
    EXPECT_FALSE(decode_credential(Bytes(kWire).first(length))) << length;
  std::vector<std::byte> longer = kWire;
  longer.resize(longer.size() + 4);
  EXPECT_FALSE(decode_credential(longer));
}

TEST(GssCredential, is_refused_with_an_unknown_procedure_or_service) {
  std::vector<std::byte> wire = kWire;
  wire[7] = std::byte{4};
  EXPECT_FALSE(decode_credential(wire));
  wire = kWire;
  for (const int service : {0, 4, 255}) {
    wire[15] = static_cast<std::byte>(service);
    EXPECT_FALSE(decode_credential(wire)) << service;
  }
}

// RFC 2203 5.2.2: "In a creation request, the seq_num and service fields are undefined and both
// must be ignored by the server."
TEST(GssCredential, may_have_any_service_in_a_creation_request) {
  std::vector<std::byte> wire = kWire;
  for (const int procedure : {1, 2}) {
    wire[7] = static_cast<std::byte>(procedure);
    wire[15] = std::byte{0};
    EXPECT_TRUE(decode_credential(wire)) << procedure;
  }
}

TEST(GssInitArg, has_a_token_of_at_most_64_KiB) {
  const std::vector<std::byte> token(kMaxToken, std::byte{7});
  const Buffer most = encode_init_arg(token).rope().flatten();
  const auto decoded = decode_init_arg(most.bytes());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->size(), kMaxToken);
  std::vector<std::byte> wire(most.bytes().begin(), most.bytes().end());
  store_be(wire.data(), kMaxToken + 1);
  wire.resize(wire.size() + 4);
  EXPECT_FALSE(decode_init_arg(wire));
  for (std::size_t cut = 1; cut < 12; ++cut)
    EXPECT_FALSE(decode_init_arg(most.bytes().first(most.size() - cut)));
}

TEST(GssInitRes, is_handle_status_window_and_token) {
  const auto handle = bytes({1, 2, 3}), token = bytes({4, 5, 6, 7, 8});
  const Buffer wire =
      encode_init_res({handle, Major::CONTINUE_NEEDED, 77, 256, token}).rope().flatten();
  const auto results = decode_init_res(wire.bytes());
  ASSERT_TRUE(results);
  EXPECT_TRUE(std::ranges::equal(results->handle, handle));
  EXPECT_EQ(results->major, Major::CONTINUE_NEEDED);
  EXPECT_EQ(results->minor, 77u);
  EXPECT_EQ(results->window, 256u);
  EXPECT_TRUE(std::ranges::equal(results->token, token));
  for (std::size_t length = 0; length < wire.size(); ++length)
    EXPECT_FALSE(decode_init_res(wire.bytes().first(length))) << length;
}

// RFC 2203 5.3.3.1
TEST(SequenceWindow, accepts_each_number_once_in_any_order) {
  SequenceWindow window;
  for (const std::uint32_t number : {5u, 3u, 4u, 1u, 0u, 9u, 8u}) {
    EXPECT_TRUE(window.is_new(number)) << number;
    window.accept(number);
    EXPECT_FALSE(window.is_new(number)) << number;
  }
  EXPECT_TRUE(window.is_new(2));
  EXPECT_TRUE(window.is_new(7));
}

TEST(SequenceWindow, refuses_what_is_below_it) {
  SequenceWindow window;
  window.accept(10'000);
  EXPECT_TRUE(window.is_new(10'000 - SequenceWindow::kKept + 1));
  EXPECT_FALSE(window.is_new(10'000 - SequenceWindow::kKept));
  EXPECT_FALSE(window.is_new(0));
}

TEST(SequenceWindow, moves_over_gaps_of_any_size) {
  for (const std::uint32_t gap : {1u, 2u, SequenceWindow::kKept - 1, SequenceWindow::kKept,
                                  SequenceWindow::kKept + 1, 100'000u, 0x7fff0000u}) {
    SequenceWindow window;
    window.accept(100);
    window.accept(100 + gap);
    EXPECT_FALSE(window.is_new(100 + gap));
    EXPECT_FALSE(window.is_new(100));
    EXPECT_TRUE(gap == 1 || window.is_new(100 + gap - 1)) << gap;
    EXPECT_TRUE(window.is_new(100 + gap + 1));
  }
}

// Against a list of all numbers that were accepted.
TEST(SequenceWindow, agrees_with_a_list_of_what_was_seen) {
  SequenceWindow window;
  std::set<std::uint32_t> seen;
  std::uint32_t highest = 0, state = 12345;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 1664525 + 1013904223;
    const bool near = (state >> 16 & 1) != 0;
    const std::uint32_t back = (state >> 17) % (near ? 64 : 2 * SequenceWindow::kKept);
    const std::uint32_t number = highest + 40 > back ? highest + 40 - back : 0;
    const bool known = seen.contains(number);
    const bool low = number + SequenceWindow::kKept <= highest;
    ASSERT_EQ(window.is_new(number), !known && !low) << number << " of " << highest;
    if (known || low) continue;
    window.accept(number);
    seen.insert(number);
    highest = std::max(highest, number);
  }
}

}  // namespace
}  // namespace stag::gss
