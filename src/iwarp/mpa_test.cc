#include "iwarp/mpa.h"

#include "iwarp/harness_test.h"
#include "iwarp/negotiation.h"

namespace stag::iwarp::test {
namespace {

constexpr auto kRequest = MpaFrameKind::Request;
constexpr auto kReply = MpaFrameKind::Reply;

Octets encoded(const MpaFrame& frame) {
  Octets bytes(kMaxMpaFrame);
  bytes.resize(encode_mpa_frame(frame, bytes));
  return bytes;
}

// A Request as a peer would send it, from flags, revision and private data.
Octets request(std::string_view flags_and_revision, std::string_view private_data) {
  Octets bytes = octets(bytes_of("MPA ID Req Frame"));
  const Octets data = from_hex(private_data);
  for (const std::byte byte : from_hex(flags_and_revision)) bytes.push_back(byte);
  bytes.push_back(static_cast<std::byte>(data.size() >> 8));
  bytes.push_back(static_cast<std::byte>(data.size()));
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

MpaFrame request_with(std::uint16_t ird, std::uint16_t ord) {
  MpaOptions options;
  options.crc = false;
  options.ird = ird;
  options.ord = ord;
  return make_request(options, {});
}

MpaOptions options_with(std::uint16_t ird, std::uint16_t ord, bool crc = false) {
  MpaOptions options;
  options.crc = crc;
  options.ird = ird;
  options.ord = ord;
  return options;
}

MpaFrame reply_to(const MpaOptions& options, const MpaFrame& request) {
  return make_reply(options, request, judge_request(options, request).value(), {});
}

TEST(MpaFrame, is_understood_from_a_linux_client) {
  const Octets bytes = golden("mpa_frames.hex").at("request_linux_client");
  const auto frame = decode_mpa_frame(kRequest, bytes);
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame->markers);
  EXPECT_FALSE(frame->crc);
  EXPECT_EQ(frame->revision, 2);
  EXPECT_EQ(frame->depths, (Depths{128, 0, false, false, false, false}));
  EXPECT_EQ(to_hex(frame->private_data), "f6ab0e1801010303");
}

TEST(MpaFrame, is_encoded_as_linux_encodes_it) {
  const auto frames = golden("mpa_frames.hex");
  for (const char* name : {"request_linux_client", "request_crc", "request_ird5_ord7",
                           "request_p2p_write_rtr", "request_p2p_read_rtr"}) {
    const auto frame = decode_mpa_frame(kRequest, frames.at(name));
    ASSERT_TRUE(frame.ok()) << name;
    EXPECT_EQ(to_hex(encoded(*frame)), to_hex(frames.at(name))) << name;
  }
  const auto reject = decode_mpa_frame(kReply, frames.at("reply_markers"));
  ASSERT_TRUE(reject.ok());
  EXPECT_TRUE(reject->rejected);
  EXPECT_EQ(to_hex(encoded(*reject)), to_hex(frames.at("reply_markers")));
}

TEST(MpaFrame, is_asked_for_byte_by_byte_and_never_beyond_its_end) {
  for (const auto& [name, bytes] : golden("mpa_frames.hex")) {
    const MpaFrameKind kind = name.starts_with("request") ? kRequest : kReply;
    for (std::size_t have = 0; have <= bytes.size(); ++have) {
      const auto missing = bytes_missing(kind, Bytes(bytes).first(have));
      ASSERT_TRUE(missing.ok()) << name << " cut at " << have;
      EXPECT_LE(have + *missing, bytes.size());
      EXPECT_EQ(*missing == 0, have == bytes.size());
      if (have < bytes.size()) {
        EXPECT_FALSE(decode_mpa_frame(kind, Bytes(bytes).first(have)).ok());
      }
    }
  }
}

TEST(MpaFrame, ignores_reserved_flags) {
  const Octets bytes = golden("mpa_frames.hex").at("request_reserved_flags");
  ASSERT_EQ(std::to_integer<int>(bytes[16]), 0x1f);
  const auto frame = decode_mpa_frame(kRequest, bytes);
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->depths->ird, 128);
}

TEST(MpaFrame, ignores_the_reject_flag_of_a_request) {
  const Octets bytes = request("30 02", "00800000");
  const auto frame = decode_mpa_frame(kRequest, bytes);
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame->rejected);
}

TEST(MpaFrame, has_no_depths_in_revision_1_even_with_the_reserved_bit_set) {
  const Octets bytes = request("10 01", "00800000");
  const auto frame = decode_mpa_frame(kRequest, bytes);
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame->depths.has_value());
  EXPECT_EQ(frame->private_data.size(), 4u);
}

TEST(MpaFrame, is_refused_at_the_first_wrong_byte_of_a_key) {
  EXPECT_EQ(bytes_missing(kRequest, bytes_of("GET")).error(), Reason::MpaKeyWrong);
  // RFC 5044 7.1.2 rule 8: two initiators that meet.
  EXPECT_EQ(bytes_missing(kReply, bytes_of("MPA ID Req")).error(), Reason::MpaKeyWrong);
}

TEST(MpaFrame, is_refused_in_an_unknown_revision) {
  EXPECT_EQ(bytes_missing(kRequest, request("10 03", "00800000")).error(),
            Reason::MpaRevisionUnknown);
  EXPECT_EQ(bytes_missing(kRequest, request("00 00", "")).error(), Reason::MpaRevisionUnknown);
}

TEST(MpaFrame, is_refused_with_more_private_data_than_512_octets) {
  Octets bytes = request("10 02", "00800000");
  store_be(bytes.data() + 18, std::uint16_t{512});
  EXPECT_EQ(bytes_missing(kRequest, bytes).value(), 508u);
  store_be(bytes.data() + 18, std::uint16_t{513});
  EXPECT_EQ(bytes_missing(kRequest, bytes).error(), Reason::MpaFrameMalformed);
}

TEST(MpaFrame, that_is_enhanced_but_too_short_for_its_depths_is_refused) {
  EXPECT_EQ(bytes_missing(kRequest, request("10 02", "008000")).error(), Reason::MpaFrameMalformed);
}

TEST(Initiator, asks_enhanced_without_markers_or_peer_to_peer) {
  const Octets bytes = encoded(make_request(options_with(128, 0), from_hex("f6ab0e1801010303")));
  EXPECT_EQ(to_hex(bytes), to_hex(golden("mpa_frames.hex").at("request_linux_client")));
}

TEST(Initiator, keeps_no_more_reads_outstanding_than_the_peer_announced) {
  const auto frames = golden("mpa_frames.hex");
  const MpaOptions options = options_with(5, 7);
  const auto reply = decode_mpa_frame(kReply, frames.at("reply_ird5_ord7"));
  const auto agreed = judge_reply(options, make_request(options, {}), *reply);
  ASSERT_TRUE(agreed.ok());
  EXPECT_EQ(agreed->ord, 7);
  EXPECT_EQ(agreed->ird, 8) << "siw rounds our five up to eight";
  const MpaOptions greedy = options_with(300, 300);
  const auto bounded = decode_mpa_frame(kReply, frames.at("reply_ird300_ord300"));
  EXPECT_EQ(judge_reply(greedy, make_request(greedy, {}), *bounded)->ord, 128);
}

TEST(Initiator, leaves_its_depths_alone_when_the_peer_does_not_negotiate) {
  const MpaOptions options = options_with(8, 6);
  MpaFrame reply = reply_to(options, make_request(options, {}));
  reply.depths->ird = kDepthUnnegotiated;
  reply.depths->ord = kDepthUnnegotiated;
  const auto agreed = judge_reply(options, make_request(options, {}), reply);
  ASSERT_TRUE(agreed.ok());
  EXPECT_EQ(agreed->ord, 6);
  EXPECT_EQ(agreed->ird, 8);
}

TEST(Initiator, terminates_when_the_peer_wants_to_read_more_than_it_serves) {
  const MpaOptions options = options_with(4, 4);
  MpaFrame reply = reply_to(options, make_request(options, {}));
  reply.depths->ord = 5;
  const auto agreed = judge_reply(options, make_request(options, {}), reply);
  ASSERT_FALSE(agreed.ok());
  EXPECT_EQ(agreed.error().reason, Reason::MpaIrdInsufficient);
  ASSERT_TRUE(agreed.error().terminate.has_value());
  EXPECT_EQ(agreed.error().terminate->error, (ErrorCode{2, 0, 6}));
}

TEST(Initiator, refuses_a_reject_and_an_unenhanced_reply) {
  const MpaOptions options = options_with(4, 4);
  const auto rejected = decode_mpa_frame(kReply, golden("mpa_frames.hex").at("reply_markers"));
  EXPECT_EQ(judge_reply(options, make_request(options, {}), *rejected).error().reason,
            Reason::MpaRejected);
  MpaFrame plain = reply_to(options, make_request(options, {}));
  plain.depths.reset();
  EXPECT_EQ(judge_reply(options, make_request(options, {}), plain).error().reason,
            Reason::MpaNotEnhanced);
}

TEST(Initiator, sends_markers_when_the_reply_requires_them) {
  const MpaOptions options = options_with(4, 4);
  MpaFrame reply = reply_to(options, make_request(options, {}));
  EXPECT_FALSE(judge_reply(options, make_request(options, {}), reply)->markers_to_send);
  reply.markers = true;
  EXPECT_TRUE(judge_reply(options, make_request(options, {}), reply)->markers_to_send);
}

TEST(Negotiation, uses_CRCs_when_either_side_wants_them) {
  for (const bool ours : {false, true}) {
    for (const bool theirs : {false, true}) {
      const MpaOptions initiator = options_with(4, 4, ours);
      const MpaOptions responder = options_with(4, 4, theirs);
      const MpaFrame request = make_request(initiator, {});
      const MpaFrame reply = reply_to(responder, request);
      EXPECT_EQ(reply.crc, ours || theirs);
      EXPECT_EQ(judge_request(responder, request)->crc, ours || theirs);
      EXPECT_EQ(judge_reply(initiator, request, reply)->crc, ours || theirs);
    }
  }
}

TEST(Responder, answers_an_enhanced_request_with_both_depths_always) {
  const MpaFrame request = request_with(128, 0);
  const Octets reply = encoded(reply_to(options_with(32, 16), request));
  EXPECT_EQ(to_hex(Bytes(reply).subspan(16)), "1002000400000010");
}

TEST(Responder, never_reads_more_than_the_initiator_serves) {
  const auto agreed = judge_request(options_with(32, 32), request_with(5, 7));
  EXPECT_EQ(agreed->ord, 5);
  EXPECT_EQ(agreed->ird, 8);
  EXPECT_EQ(reply_to(options_with(32, 32), request_with(5, 7)).depths,
            (Depths{7, 5, false, false, false, false}));
}

TEST(Responder, echoes_a_depth_that_is_not_to_be_negotiated) {
  const MpaFrame request = request_with(kDepthUnnegotiated, kDepthUnnegotiated);
  const auto agreed = judge_request(options_with(32, 16), request);
  EXPECT_EQ(agreed->ord, 16);
  EXPECT_EQ(agreed->ird, 32);
  EXPECT_EQ(reply_to(options_with(32, 16), request).depths,
            (Depths{kDepthUnnegotiated, kDepthUnnegotiated, false, false, false, false}));
}

TEST(Responder, answers_an_unenhanced_request_in_the_same_form) {
  for (const char* flags : {"00 01", "00 02"}) {
    const Octets bytes = request(flags, "f6ab0e1801010303");
    const auto frame = decode_mpa_frame(kRequest, bytes);
    const auto agreed = judge_request(MpaOptions{}, *frame);
    ASSERT_TRUE(agreed.ok());
    EXPECT_EQ(agreed->ord, MpaOptions{}.unenhanced_ord);
    const Octets reply = encoded(make_reply(MpaOptions{}, *frame, *agreed, {}));
    EXPECT_EQ(reply.size(), kMpaHeaderSize);
    EXPECT_EQ(std::to_integer<int>(reply[16]) & 0x10, 0);
    EXPECT_EQ(reply[17], bytes[17]);
  }
  MpaOptions strict;
  strict.accept_unenhanced = false;
  const Octets old = request("00 01", "");
  EXPECT_EQ(judge_request(strict, *decode_mpa_frame(kRequest, old)).error(),
            Reason::MpaNotEnhanced);
}

TEST(Responder, accepts_peer_to_peer_with_an_indication_both_support) {
  const auto frames = golden("mpa_frames.hex");
  const MpaOptions options = options_with(32, 32);
  const auto write = decode_mpa_frame(kRequest, frames.at("request_p2p_write_rtr"));
  EXPECT_TRUE(reply_to(options, *write).depths->peer_to_peer);
  EXPECT_TRUE(reply_to(options, *write).depths->write_rtr);
  const auto read = decode_mpa_frame(kRequest, frames.at("request_p2p_read_rtr"));
  EXPECT_TRUE(reply_to(options, *read).depths->read_rtr);
  EXPECT_GE(judge_request(options, *read)->ird, 1) << "the indication is itself a Read";
  const auto none = decode_mpa_frame(kRequest, frames.at("request_p2p_none"));
  EXPECT_TRUE(reply_to(options, *none).depths->write_rtr);
}

TEST(Responder, rejects_in_the_form_of_the_request) {
  const Octets enhanced = encoded(make_reject(options_with(4, 4), request_with(4, 4), {}));
  EXPECT_EQ(to_hex(Bytes(enhanced).subspan(16)), "3002000400040004");
  MpaFrame plain;
  plain.revision = 1;
  const Octets old = encoded(make_reject(options_with(4, 4), plain, {}));
  EXPECT_EQ(to_hex(Bytes(old).subspan(16)), "20010000");
}

}  // namespace
}  // namespace stag::iwarp::test
