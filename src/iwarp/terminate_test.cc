#include "iwarp/terminate.h"

#include "iwarp/fpdu.h"
#include "iwarp/harness_test.h"

namespace stag::iwarp::test {
namespace {

std::string encoded(const Terminate& terminate) {
  Octets bytes(kMaxTerminateSize);
  bytes.resize(encode_terminate(terminate, bytes));
  return to_hex(bytes);
}

const Octets kSend = from_hex("4143 00000000 00000000 00000001 00000000 aabbccdd");
const Octets kReadRequest = from_hex(
    "4141 00000000 00000001 00000001 00000000"
    "aabbcc01 0000000000001000 00001000 12340100 0000000000002000");

TEST(Terminate, is_encoded_in_the_bit_order_of_RFC_5040) {
  EXPECT_EQ(encoded(make_terminate(error::kNoBuffer, kSend, kSend.size())),
            "1202c000"
            "0016"
            "414300000000000000000000000100000000");
  EXPECT_EQ(encoded(make_terminate(error::kReadInvalidStag, kReadRequest, 46)),
            "0100e000"
            "002e"
            "414100000000000000010000000100000000"
            "aabbcc0100000000000010000000100012340100000000000000"
            "2000");
}

TEST(Terminate, copies_the_headers_that_figure_10_of_RFC_5040_allows) {
  EXPECT_EQ(encoded(make_terminate(error::kCrc, kSend, 22)), "20020000");
  EXPECT_EQ(encoded(make_terminate(error::kLocalCatastrophic, kSend, 22)), "00000000");
  const Terminate operation = make_terminate(error::kStreamCatastrophic, kReadRequest, 46);
  EXPECT_EQ(operation.ddp_header.size(), kUntaggedHeaderSize);
  EXPECT_TRUE(operation.rdmap_header.empty());
  const Octets write = from_hex("c140 12345601 0000000000001000 61626364");
  EXPECT_EQ(encoded(make_terminate(error::kTaggedInvalidStag, write, 18)),
            "1100c000"
            "0012"
            "c140123456010000000000001000");
}

TEST(Terminate, survives_encoding_and_decoding) {
  for (const Terminate& terminate :
       {make_terminate(error::kNoBuffer, kSend, 22), make_terminate(error::kCrc),
        make_terminate(error::kReadBounds, kReadRequest, 46),
        make_terminate(error::kInsufficientIrd)}) {
    const auto decoded = decode_terminate(from_hex(encoded(terminate)));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, terminate);
  }
}

TEST(Terminate, is_read_from_linux_in_its_own_bit_order) {
  const auto frames = golden("siw_terminates.hex");
  const std::map<std::string, ErrorCode> expected = {
      {"burst300", error::kNoBuffer},
      {"send_too_long", error::kNoBuffer},
      {"wrong_MO", error::kInvalidOffset},
      {"wrong_MSN", error::kInvalidSequence},
      {"wrong_QN", error::kInvalidQueue},
      {"write_bad_stag", error::kTaggedInvalidStag},
      {"bad_ddp_version", error::kUntaggedDdpVersion},
      {"rreq_no_ird", error::kStreamCatastrophic},
      {"rreq_bad_stag", error::kReadInvalidStag},
      {"send_inv_bad", error::kCannotInvalidate},
      {"mpa_crc_ok_then_badcrc", error::kCrc},
  };
  for (const auto& [name, error] : expected) {
    const auto terminate = decode_terminate(frames.at("terminate_" + name));
    ASSERT_TRUE(terminate.ok()) << name;
    EXPECT_EQ(terminate->error, error) << name << ": " << to_string(terminate->error);
  }
  const auto write = decode_terminate(frames.at("terminate_write_bad_stag"));
  EXPECT_EQ(write->segment_length, 4);
  EXPECT_EQ(write->ddp_header.size(), kTaggedHeaderSize);
  const auto read = decode_terminate(frames.at("terminate_rreq_bad_stag"));
  EXPECT_EQ(read->rdmap_header.size(), kReadRequestSize);
}

TEST(Terminate, can_be_cut_at_every_length) {
  const Octets whole = from_hex(encoded(make_terminate(error::kReadBounds, kReadRequest, 46)));
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const Octets cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const auto decoded = decode_terminate(cut);
    ASSERT_EQ(decoded.ok(), length >= 4);
    if (decoded.ok()) {
      EXPECT_EQ(decoded->error, error::kReadBounds);
    }
  }
}

TEST(Terminate, names_its_error_in_words) {
  EXPECT_STREQ(to_string(error::kCrc), "MPA: CRC does not match");
  EXPECT_STREQ(to_string(ErrorCode{0, 0, 77}), "local catastrophic error");
  EXPECT_STREQ(to_string(ErrorCode{9, 9, 9}), "unknown error");
}

}  // namespace
}  // namespace stag::iwarp::test
