#include "iwarp/fpdu.h"

#include "iwarp/harness_test.h"

namespace stag::iwarp::test {
namespace {

std::uint32_t crc_of(Bytes bytes) {
  Crc32c crc;
  crc.add(bytes);
  return crc.value();
}

TEST(Crc, gives_the_known_answers_of_RFC_3720) {
  Octets ascending(32);
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc_of(Octets(32)), 0x8A9136AAu);
  EXPECT_EQ(crc_of(Octets(32, std::byte{0xFF})), 0x62A8AB43u);
  EXPECT_EQ(crc_of(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc_of(bytes_of("123456789")), 0xE3069283u);
}

TEST(Crc, matches_the_first_example_frame_of_RFC_5044) {
  const Octets frame = from_hex(
      "00000000 002a 4143 00000000 00000000 00000001 00000000"
      "000000000000000000000000000000000000000000000000");
  Crc32c crc;
  crc.add(frame);
  EXPECT_TRUE(crc.matches(from_hex("52239983").data()));
}

TEST(Crc, is_the_same_in_whatever_parts_the_bytes_come) {
  const Octets bytes = pattern(257, 3);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Crc32c crc;
    crc.add(Bytes(bytes).first(cut));
    crc.add(Bytes(bytes).subspan(cut));
    ASSERT_EQ(crc.value(), crc_of(bytes));
  }
}

TEST(Crc, is_stored_least_significant_octet_first) {
  std::byte wire[4];
  Crc32c crc;
  crc.add(bytes_of("123456789"));
  crc.store(wire);
  EXPECT_EQ(to_hex(wire), "839206e3");
}

TEST(Fpdu, is_a_multiple_of_four_octets_for_every_length) {
  for (std::size_t ulpdu = 0; ulpdu <= 64; ++ulpdu) {
    EXPECT_EQ(fpdu_size(ulpdu) % 4, 0u);
    EXPECT_LT(fpdu_pad(ulpdu), 4u);
  }
  EXPECT_EQ(fpdu_size(0x56), 92u);
  EXPECT_EQ(fpdu_size(46), 52u);
}

TEST(Mulpdu, follows_the_formulas_of_RFC_5044_section_4_5) {
  EXPECT_EQ(mulpdu(1460, false), 1454u);
  EXPECT_EQ(mulpdu(1459, false), 1450u);
  EXPECT_EQ(mulpdu(1460, true), 1442u);
  EXPECT_EQ(mulpdu(100, false), 128u);
}

TEST(Mulpdu, stays_between_128_and_64768_octets_for_every_segment_size) {
  for (std::size_t emss = 0; emss < 70000; ++emss) {
    for (const bool markers : {false, true}) {
      const std::size_t ulpdu = mulpdu(emss, markers);
      ASSERT_GE(ulpdu, 128u) << emss;
      ASSERT_LE(ulpdu, 64768u) << emss;
      // RFC 5044 4.3: a marker is due at least every 512 octets, and one may come first of all.
      const std::size_t marked = markers ? 4 * ((emss + 511) / 512) : 0;
      if (ulpdu > 128) {
        ASSERT_LE(fpdu_size(ulpdu) + marked, emss) << emss;
      }
    }
  }
  EXPECT_EQ(mulpdu(1 << 20, false), 64768u);
  EXPECT_EQ(mulpdu(1 << 20, true), 64768u);
}

}  // namespace
}  // namespace stag::iwarp::test
