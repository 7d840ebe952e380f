#include "base/siphash.h"

#include <gtest/gtest.h>

namespace stag {
namespace {

TEST(SipHash, gives_the_values_of_its_reference) {
  // The reference implementation's first vectors: key 00..0f, messages of n bytes 00, 01, ...
  SipKey key;
  std::array<std::byte, 15> message;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i);
  EXPECT_EQ(siphash(key, {}), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(siphash(key, message), 0xa129ca6149be45e5u);
}

TEST(SipHash, is_the_same_however_the_message_is_cut) {
  SipKey key{};
  std::array<std::byte, 40> message;
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i);
  const Bytes whole(message);
  for (std::size_t first = 0; first <= whole.size(); ++first) {
    for (std::size_t second = first; second <= whole.size(); ++second) {
      SipHash pieces(key);
      pieces.add(whole.first(first));
      pieces.add(whole.subspan(first, second - first));
      pieces.add(whole.subspan(second));
      EXPECT_EQ(pieces.finish(), siphash(key, whole)) << first << ", " << second;
    }
  }
}

TEST(SipHash, has_one_key_for_the_process_and_not_a_known_one) {
  EXPECT_EQ(process_sip_key(), process_sip_key());
  EXPECT_NE(process_sip_key(), SipKey{});
}

}  // namespace
}  // namespace stag
