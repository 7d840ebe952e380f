#include "iwarp/receiver.h"

#include <tuple>

#include "iwarp/harness_test.h"
#include "testing/proves.h"

namespace stag::iwarp::test {
namespace {

std::string terminate_hex(const Violation& violation) {
  Octets bytes(kMaxTerminateSize);
  bytes.resize(encode_terminate(violation.terminate, bytes));
  return to_hex(bytes);
}

// -- Sends --------------------------------------------------------------------------------------

TEST(Receiver, delivers_a_send_that_lies_in_the_buffer_in_place) {
  Inlet inlet;
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000000 cafe01"));
  ASSERT_EQ(inlet.sink.sends.size(), 1u);
  EXPECT_EQ(to_hex(inlet.sink.sends[0]), "cafe01");
  EXPECT_TRUE(inlet.sink.in_place[0]);
  EXPECT_FALSE(inlet.sink.solicitations[0]);
  EXPECT_TRUE(inlet.receiver.first_fpdu_seen());
  EXPECT_TRUE(inlet.receiver.at_boundary());
}

TEST(Receiver, delivers_many_sends_of_one_buffer_in_order) {
  Inlet inlet;
  Octets bytes;
  for (int i = 1; i <= 5; ++i) {
    const Octets one = fpdu("4143 00000000 00000000 0000000" + std::to_string(i) + " 00000000 0" +
                            std::to_string(i));
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  inlet.receiver.on_bytes(bytes);
  ASSERT_EQ(inlet.sink.sends.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(std::to_integer<int>(inlet.sink.sends[i][0]), i + 1);
}

TEST(Receiver, joins_a_send_of_several_segments) {
  Inlet inlet;
  inlet.receiver.on_bytes(fpdu("0143 00000000 00000000 00000001 00000000 aabbccdd"));
  EXPECT_FALSE(inlet.receiver.at_boundary());
  inlet.receiver.on_bytes(fpdu("0143 00000000 00000000 00000001 00000004 11"));
  EXPECT_TRUE(inlet.sink.sends.empty());
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000005 2233"));
  ASSERT_EQ(inlet.sink.sends.size(), 1u);
  EXPECT_EQ(to_hex(inlet.sink.sends[0]), "aabbccdd112233");
  EXPECT_FALSE(inlet.sink.in_place[0]);
}

TEST(Receiver, delivers_an_empty_send_and_takes_a_credit_for_it) {
  Inlet inlet({}, 2);
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000000"));
  ASSERT_EQ(inlet.sink.sends.size(), 1u);
  EXPECT_TRUE(inlet.sink.sends[0].empty());
  EXPECT_EQ(inlet.receiver.receive_credit(), 1u);
}

TEST(Receiver, accepts_the_solicited_forms_and_ignores_reserved_bits) {
  Inlet inlet;
  inlet.receiver.on_bytes(fpdu("7d75 00000000 00000000 00000001 00000000 01"));
  ASSERT_EQ(inlet.sink.log, (std::vector<std::string>{"send 1"}));
  EXPECT_TRUE(inlet.sink.solicitations[0]);
}

// What a peer may post is its own affair; the length field is all that bounds it here.
TEST(Receiver, takes_a_ULPDU_as_long_as_the_length_field_can_say) {
  for (const bool whole : {true, false}) {
    Inlet inlet;
    const Octets data = pattern(65535 - kTaggedHeaderSize, 3);
    Octets memory(data.size());
    inlet.expose_sink(0xAABB0001, memory, 0);
    const Octets frame = fpdu("c140 aabb0001 0000000000000000 " + to_hex(data));
    if (!whole) receive(inlet.receiver, Bytes(frame).first(100));
    receive(inlet.receiver, Bytes(frame).subspan(whole ? 0 : 100));
    EXPECT_EQ(memory, data);
    EXPECT_TRUE(inlet.sink.violations.empty());
    EXPECT_TRUE(inlet.receiver.at_boundary());
  }
}

TEST(Receiver, revokes_what_a_send_invalidates_before_it_delivers_it) {
  PROVES("R8797-3.2-a", "R8797-3.2-b");
  Inlet inlet;
  Octets memory(16);
  const std::uint32_t stag = inlet.expose_sink(0xAABB0001, memory, 0);
  inlet.receiver.on_bytes(fpdu("4144 aabb0001 00000000 00000001 00000000 01"));
  EXPECT_EQ(inlet.sink.invalidations, (std::vector<std::optional<std::uint32_t>>{stag}));
  EXPECT_EQ(inlet.table.sink(stag, Right::RemoteWrite, 0, 1).error(), StagFault::Revoked);
}

TEST(Receiver, expects_message_number_zero_after_the_largest) {
  ReceiverOptions options;
  options.ird = 2;
  options.first_sequence = 0xFFFFFFFF;
  Inlet inlet(options);
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 ffffffff 00000000"));
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000000 00000000"));
  const std::string read = "00000001 0000000000000002 00000000 00000000 0000000000000000";
  inlet.receiver.on_bytes(fpdu("4141 00000000 00000001 ffffffff 00000000" + read));
  inlet.receiver.on_bytes(fpdu("4141 00000000 00000001 00000000 00000000" + read));
  EXPECT_EQ(inlet.sink.log,
            (std::vector<std::string>{"send 0", "send 0", "read request 0", "read request 0"}));
}

TEST(Receiver, takes_no_message_twice) {
  Inlet inlet;
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000000"));
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000000"));
  EXPECT_EQ(inlet.sink.log, (std::vector<std::string>{"send 0", "violation InvalidMsn"}));
}

TEST(Receiver, lets_a_read_request_pass_between_the_segments_of_a_send) {
  Inlet inlet;
  const Octets source = pattern(32, 1);
  inlet.expose_source(0x0A, source, 0);
  inlet.receiver.on_bytes(fpdu("0143 00000000 00000000 00000001 00000000 aabb"));
  inlet.receiver.on_bytes(
      fpdu("4141 00000000 00000001 00000001 00000000"
           "00000001 0000000000000000 00000020 0000000a 0000000000000000"));
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000002 cc"));
  EXPECT_EQ(inlet.sink.log, (std::vector<std::string>{"read request 32", "send 3"}));
}

// -- Writes -------------------------------------------------------------------------------------

TEST(Receiver, places_writes_at_their_offset) {
  Inlet inlet;
  Octets memory(8);
  inlet.expose_sink(0x0B, memory, 0x1000);
  inlet.receiver.on_bytes(fpdu("8140 0000000b 0000000000001002 1122"));
  inlet.receiver.on_bytes(fpdu("c140 0000000b 0000000000001004 3344"));
  EXPECT_EQ(to_hex(memory), "0000112233440000");
  EXPECT_EQ(inlet.receiver.traffic().write_bytes, 4u);
  EXPECT_TRUE(inlet.sink.log.empty());
}

TEST(Receiver, accepts_a_write_of_nothing_to_any_stag) {
  Inlet inlet;
  inlet.receiver.on_bytes(fpdu("c140 00000000 0000000000000000"));
  EXPECT_TRUE(inlet.sink.log.empty());
  EXPECT_TRUE(inlet.receiver.first_fpdu_seen());
}

TEST(Receiver, counts_and_drops_what_is_written_to_a_target_that_was_given_up) {
  PROVES("R8166-8.1.4-b");
  Inlet inlet;
  Octets memory(8);
  const std::uint32_t stag = inlet.expose_sink(0x0B, memory, 0);
  inlet.table.discard(stag);
  inlet.receiver.on_bytes(fpdu("c140 0000000b 0000000000000000 11223344"));
  EXPECT_EQ(to_hex(memory), "0000000000000000");
  EXPECT_EQ(inlet.receiver.traffic().discarded_bytes, 4u);
  EXPECT_TRUE(inlet.sink.log.empty());
}

TEST(Receiver, names_the_place_of_a_large_payload_that_is_still_to_come) {
  Inlet inlet({true, 4, 4, 4096});
  Octets memory(16384);
  inlet.expose_sink(0x0B, memory, 0x7000);
  const Octets data = pattern(10000, 5);
  const Octets frame = fpdu("c140 0000000b 0000000000007010" + to_hex(data), true);
  const std::size_t header = kLengthSize + kTaggedHeaderSize;
  inlet.receiver.on_bytes(Bytes(frame).first(header + 100));
  MutableBytes where = inlet.receiver.direct_targets()[0];
  ASSERT_EQ(where.data(), memory.data() + 0x10 + 100);
  ASSERT_EQ(where.size(), 9900u);
  std::copy_n(frame.begin() + header + 100, 1000, where.begin());
  inlet.receiver.on_placed(1000);
  where = inlet.receiver.direct_targets()[0];
  ASSERT_EQ(where.size(), 8900u);
  std::copy_n(frame.begin() + header + 1100, 8900, where.begin());
  inlet.receiver.on_placed(8900);
  EXPECT_TRUE(inlet.receiver.direct_targets().empty());
  inlet.receiver.on_bytes(Bytes(frame).subspan(header + 10000));
  EXPECT_TRUE(inlet.sink.log.empty());
  EXPECT_TRUE(inlet.receiver.at_boundary());
  EXPECT_EQ(octets(Bytes(memory).subspan(0x10, data.size())), data);
  EXPECT_EQ(inlet.receiver.traffic().copied_bytes, 100u);
  EXPECT_EQ(inlet.receiver.traffic().write_bytes, 10000u);
}

TEST(Receiver, finds_a_damaged_byte_in_a_payload_placed_by_the_caller) {
  Inlet inlet({true, 4, 4, 4096});
  Octets memory(8192);
  inlet.expose_sink(0x0B, memory, 0);
  const Octets frame = fpdu("c140 0000000b 0000000000000000" + to_hex(pattern(8192, 5)), true);
  inlet.receiver.on_bytes(Bytes(frame).first(16));
  const MutableBytes where = inlet.receiver.direct_targets()[0];
  ASSERT_EQ(where.size(), 8192u);
  std::copy_n(frame.begin() + 16, 8192, where.begin());
  where[77] ^= std::byte{1};
  inlet.receiver.on_placed(8192);
  inlet.receiver.on_bytes(Bytes(frame).subspan(16 + 8192));
  EXPECT_EQ(inlet.sink.log, (std::vector<std::string>{"violation FpduCrcWrong"}));
}

TEST(Receiver, offers_no_place_in_memory_that_was_revoked_or_given_up_meanwhile) {
  for (const bool revoke : {false, true}) {
    Inlet inlet;
    Octets memory(8192);
    const std::uint32_t stag = inlet.expose_sink(0x0B, memory, 0);
    const Octets frame = fpdu("c140 0000000b 0000000000000000" + to_hex(pattern(8192, 5)));
    inlet.receiver.on_bytes(Bytes(frame).first(16));
    ASSERT_EQ(inlet.receiver.direct_targets()[0].size(), 8192u);
    revoke ? inlet.table.revoke(stag) : inlet.table.discard(stag);
    EXPECT_TRUE(inlet.receiver.direct_targets().empty());
    inlet.receiver.on_bytes(Bytes(frame).subspan(16));
    EXPECT_EQ(memory, Octets(8192)) << "not a byte may arrive in it";
    EXPECT_EQ(inlet.sink.violations.size(), revoke ? 1u : 0u);
  }
}

// -- Reads --------------------------------------------------------------------------------------

constexpr ReadRequest kRead{0x0C, 0x2000, 6, 0xFEED, 0x9999};

struct Reading : ::testing::Test {
  Reading() {
    inlet.register_read_sink(kRead.sink_stag, memory, kRead.sink_offset);
    inlet.receiver.expect_read_response(kRead);
  }
  Octets memory = Octets(6);
  Inlet inlet;
};

TEST_F(Reading, is_done_when_its_last_byte_is_placed) {
  inlet.receiver.on_bytes(fpdu("8142 0000000c 0000000000002000 11223344"));
  EXPECT_TRUE(inlet.sink.reads_done.empty());
  inlet.receiver.on_bytes(fpdu("c142 0000000c 0000000000002004 5566"));
  EXPECT_EQ(inlet.sink.reads_done, std::vector<ReadRequest>{kRead});
  EXPECT_EQ(to_hex(memory), "112233445566");
  EXPECT_EQ(inlet.receiver.reads_outstanding(), 0u);
}

TEST_F(Reading, is_done_by_an_empty_response_when_it_is_empty) {
  Inlet other;
  other.receiver.expect_read_response({});
  other.receiver.on_bytes(fpdu("c142 00000000 0000000000000000"));
  EXPECT_EQ(other.sink.log, std::vector<std::string>{"read done 0"});
}

TEST_F(Reading, goes_on_after_its_sink_was_given_up) {
  inlet.table.discard(kRead.sink_stag);
  inlet.receiver.on_bytes(fpdu("c142 0000000c 0000000000002000 112233445566"));
  EXPECT_EQ(inlet.sink.log, std::vector<std::string>{"read done 6"});
  EXPECT_EQ(memory, Octets(6));
}

TEST_F(Reading, accepts_only_the_response_to_the_oldest_request) {
  struct Case {
    const char* ulpdu;
    Reason reason;
  };
  for (const Case& bad : {
           Case{"c142 0000000d 0000000000002000 112233445566", Reason::ReadResponseWrong},
           Case{"c142 0000000c 0000000000002001 112233445566", Reason::ReadResponseWrong},
           Case{"c142 0000000c 0000000000002000 1122334455", Reason::ReadResponseWrong},
           Case{"c142 0000000c 0000000000002000 11223344556677", Reason::ReadResponseWrong},
           Case{"8142 0000000c 0000000000002000 11223344556677", Reason::ReadResponseWrong},
           Case{"c140 0000000c 0000000000002000 112233445566", Reason::StagAccessViolation},
       }) {
    Inlet victim;
    Octets sink(6);
    victim.register_read_sink(kRead.sink_stag, sink, kRead.sink_offset);
    victim.receiver.expect_read_response(kRead);
    victim.receiver.on_bytes(fpdu(bad.ulpdu));
    ASSERT_EQ(victim.sink.violations.size(), 1u) << bad.ulpdu;
    EXPECT_EQ(victim.sink.violations[0].reason, bad.reason) << bad.ulpdu;
    EXPECT_EQ(sink, Octets(6)) << bad.ulpdu;
  }
}

TEST(Receiver, hands_read_requests_up_in_order_and_again_when_answered) {
  Inlet inlet({false, 1, 0, 4096});
  const Octets source = pattern(64, 1);
  inlet.expose_source(0x0A, source, 0x100);
  const std::string body = "00000001 0000000000000002 00000040 0000000a 0000000000000100";
  inlet.receiver.on_bytes(fpdu("4141 00000000 00000001 00000001 00000000" + body));
  EXPECT_EQ(inlet.sink.read_requests, (std::vector<ReadRequest>{{1, 2, 64, 0x0A, 0x100}}));
  inlet.receiver.read_response_sent();
  inlet.receiver.on_bytes(fpdu("4141 00000000 00000001 00000002 00000000" + body));
  EXPECT_EQ(inlet.sink.read_requests.size(), 2u);
  inlet.receiver.on_bytes(fpdu("4141 00000000 00000001 00000003 00000000" + body));
  EXPECT_EQ(inlet.sink.log.back(), "violation ReadRequestOverrun");
}

TEST(Receiver, does_not_look_at_the_source_of_a_read_of_nothing) {
  Inlet inlet;
  inlet.receiver.on_bytes(
      fpdu("4141 00000000 00000001 00000001 00000000"
           "00000001 0000000000000002 00000000 deadbeef 0000000000000100"));
  EXPECT_EQ(inlet.sink.log, std::vector<std::string>{"read request 0"});
}

// -- Terminate and violations -------------------------------------------------------------------

TEST(Receiver, stops_at_a_terminate) {
  Inlet inlet;
  inlet.receiver.on_bytes(fpdu("4147 00000000 00000002 00000001 00000000 20020000"));
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000000"));
  EXPECT_EQ(inlet.sink.log, std::vector<std::string>{"terminate"});
  EXPECT_EQ(inlet.sink.terminates[0].error, error::kCrc);
  EXPECT_TRUE(inlet.receiver.stopped());
}

TEST(Receiver, bears_a_terminate_of_any_length) {
  for (const std::size_t length : {0, 3, 4, 52, 53, 20000}) {
    Inlet inlet;
    const Octets frame =
        fpdu("4147 00000000 00000002 00000001 00000000" + to_hex(Octets(length, std::byte{0xE0})));
    for (const std::byte byte : frame) inlet.receiver.on_bytes(Bytes(&byte, 1));
    EXPECT_TRUE(inlet.receiver.stopped());
    EXPECT_EQ(inlet.sink.log.back(), length < 4 ? "violation TerminateMalformed" : "terminate");
  }
}

struct Bad {
  const char* name;
  const char* ulpdu;
  Reason reason;
  const char* terminate;  // its payload
};

const Bad kBad[] = {
    {"ddp_version_untagged", "4043 00000000 00000000 00000001 00000000 01", Reason::DdpVersionWrong,
     "1206c0000013404300000000000000000000000100000000"},
    {"ddp_version_tagged", "c240 0000000b 0000000000001000 01", Reason::DdpVersionWrong,
     "1104c000000fc2400000000b0000000000001000"},
    {"rdmap_version", "4103 00000000 00000000 00000001 00000000", Reason::RdmapVersionWrong,
     "0205c0000012410300000000000000000000000100000000"},
    {"opcode", "4149 00000000 00000000 00000001 00000000", Reason::RdmapOpcodeWrong,
     "0206c0000012414900000000000000000000000100000000"},
    {"tagged_send", "c143 0000000b 0000000000001000", Reason::RdmapOpcodeWrong,
     "0206c000000ec1430000000b0000000000001000"},
    {"untagged_write", "4140 00000000 00000000 00000001 00000000", Reason::RdmapOpcodeWrong,
     "0206c0000012414000000000000000000000000100000000"},
    {"queue", "4143 00000000 00000005 00000001 00000000", Reason::InvalidQn,
     "1201c0000012414300000000000000050000000100000000"},
    {"read_request_on_the_send_queue",
     "4141 00000000 00000000 00000001 00000000"
     "00000001 0000000000000002 00000040 0000000a 0000000000000100",
     Reason::InvalidQn, "1201c000002e414100000000000000000000000100000000"},
    {"sequence", "4143 00000000 00000000 00000002 00000000", Reason::InvalidMsn,
     "1203c0000012414300000000000000000000000200000000"},
    {"offset", "4143 00000000 00000000 00000001 00000004 01", Reason::InvalidMo,
     "1204c0000013414300000000000000000000000100000004"},
    {"too_long", "4143 00000000 00000000 00000001 00000000 0102030405060708 09",
     Reason::MessageTooLong, "1205c000001b414300000000000000000000000100000000"},
    {"invalidate_unknown", "4144 00004711 00000000 00000001 00000000", Reason::StagUnknown,
     "0209c0000012414400004711000000000000000100000000"},
    {"write_unknown", "c140 12345601 0000000000001000 61626364", Reason::StagUnknown,
     "1100c0000012c140123456010000000000001000"},
    {"write_beyond", "c140 0000000b 0000000000001005 61626364", Reason::BaseOrBoundsViolation,
     "1101c0000012c1400000000b0000000000001005"},
    {"write_before", "c140 0000000b 0000000000000fff 61626364", Reason::BaseOrBoundsViolation,
     "1101c0000012c1400000000b0000000000000fff"},
    {"write_wraps", "c140 0000000b fffffffffffffffe 61626364", Reason::StagOffsetWraps,
     "1103c0000012c1400000000bfffffffffffffffe"},
    {"write_to_a_source", "c140 0000000a 0000000000000100 61626364", Reason::StagAccessViolation,
     "1100c0000012c1400000000a0000000000000100"},
    {"response_without_request", "c142 0000000b 0000000000001000 01",
     Reason::ReadResponseUnexpected, "0206c000000fc1420000000b0000000000001000"},
    {"read_unknown",
     "4141 00000000 00000001 00000001 00000000"
     "aabbcc01 0000000000001000 00001000 12340100 0000000000002000",
     Reason::StagUnknown,
     "0100e000002e414100000000000000010000000100000000"
     "aabbcc0100000000000010000000100012340100000000000000"
     "2000"},
    {"read_beyond",
     "4141 00000000 00000001 00000001 00000000"
     "aabbcc01 0000000000001000 00000009 0000000a 0000000000000100",
     Reason::BaseOrBoundsViolation,
     "0101e000002e414100000000000000010000000100000000"
     "aabbcc010000000000001000000000090000000a00000000000001"
     "00"},
    {"read_wraps",
     "4141 00000000 00000001 00000001 00000000"
     "aabbcc01 0000000000001000 00000009 0000000a fffffffffffffff8",
     Reason::StagOffsetWraps,
     "0104e000002e414100000000000000010000000100000000"
     "aabbcc010000000000001000000000090000000afffffffffffff"
     "ff8"},
    {"read_from_a_sink",
     "4141 00000000 00000001 00000001 00000000"
     "aabbcc01 0000000000001000 00000001 0000000b 0000000000001000",
     Reason::StagAccessViolation,
     "0102e000002e414100000000000000010000000100000000"
     "aabbcc010000000000001000000000010000000b000000000000"
     "1000"},
    {"read_request_short",
     "4141 00000000 00000001 00000001 00000000"
     "aabbcc01 0000000000001000 00000001 0000000b 00000000000010",
     Reason::ReadRequestMalformed, "02ffc000002d414100000000000000010000000100000000"},
    {"read_request_long",
     "4141 00000000 00000001 00000001 00000000"
     "aabbcc01 0000000000001000 00000001 0000000b 0000000000001000 00",
     Reason::ReadRequestMalformed, "1205c000002f414100000000000000010000000100000000"},
    {"read_request_sequence",
     "4141 00000000 00000001 00000002 00000000"
     "aabbcc01 0000000000001000 00000001 0000000b 0000000000001000",
     Reason::InvalidMsn, "1203c000002e414100000000000000010000000200000000"},
    {"too_short_untagged", "4143 00000000 00000000 00000001 000000", Reason::FpduTooShort,
     "20030000"},
    {"too_short_tagged", "c140 0000000b 00000000000010", Reason::FpduTooShort, "20030000"},
};

class Violations : public ::testing::TestWithParam<Bad> {};

// The same answer whether the frame comes whole or byte by byte, and nothing is taken after it.
TEST_P(Violations, are_named_and_answered_with_the_right_terminate) {
  PROVES("R8166-8.1-b");
  const Octets frame = fpdu(GetParam().ulpdu);
  for (const std::size_t portion : {frame.size(), std::size_t{1}}) {
    const Octets source = pattern(8, 1);
    Octets memory(8);
    Inlet inlet({false, 1, 1, 4096}, 4, 8);
    inlet.expose_source(0x0A, source, 0x100);
    inlet.expose_sink(0x0B, memory, 0x1000);
    for (std::size_t at = 0; at < frame.size(); at += portion) {
      inlet.receiver.on_bytes(Bytes(frame).subspan(at, portion));
    }
    ASSERT_EQ(inlet.sink.violations.size(), 1u);
    EXPECT_EQ(inlet.sink.violations[0].reason, GetParam().reason)
        << to_string(inlet.sink.violations[0].reason);
    EXPECT_EQ(terminate_hex(inlet.sink.violations[0]), GetParam().terminate);
    inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000000"));
    EXPECT_EQ(inlet.sink.log.size(), 1u);
    EXPECT_EQ(memory, Octets(8));
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, Violations, ::testing::ValuesIn(kBad),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Receiver, ends_the_connection_when_the_peer_exceeds_its_credit) {
  Inlet inlet({}, 1, 16);
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000000 01"));
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000002 00000000 01"));
  ASSERT_EQ(inlet.sink.violations.size(), 1u);
  EXPECT_EQ(inlet.sink.violations[0].reason, Reason::ReceiveOverrun);
  EXPECT_EQ(inlet.sink.violations[0].terminate.error, error::kNoBuffer);
}

TEST(Receiver, ends_the_connection_when_segments_add_up_to_too_long_a_message) {
  Inlet inlet({}, 1, 4);
  inlet.receiver.on_bytes(fpdu("0143 00000000 00000000 00000001 00000000 010203"));
  inlet.receiver.on_bytes(fpdu("4143 00000000 00000000 00000001 00000003 0405"));
  EXPECT_EQ(inlet.sink.log, std::vector<std::string>{"violation MessageTooLong"});
}

TEST(Receiver, ends_the_connection_when_two_tagged_messages_are_mixed) {
  for (const char* second : {"c140 0000000b 0000000000001000 01",  // not where the first goes on
                             "c140 0000000a 0000000000001001 01",  // not the same memory
                             "c142 0000000c 0000000000002000 112233445566"}) {
    Octets memory(8);
    Inlet inlet;
    inlet.expose_sink(0x0B, memory, 0x1000);
    inlet.register_read_sink(kRead.sink_stag, memory, kRead.sink_offset);
    inlet.receiver.expect_read_response(kRead);
    inlet.receiver.on_bytes(fpdu("8140 0000000b 0000000000001000 01"));
    inlet.receiver.on_bytes(fpdu(second));
    EXPECT_EQ(inlet.sink.log, std::vector<std::string>{"violation TaggedInterleaved"}) << second;
  }
}

TEST(Receiver, refuses_every_single_damaged_bit_when_CRCs_are_on) {
  const Octets good = fpdu("4143 00000000 00000000 00000001 00000000 cafe01", true);
  for (std::size_t bit = 16; bit < good.size() * 8; ++bit) {
    Octets frame = good;
    frame[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    Inlet inlet({true, 4, 4, 4096});
    inlet.receiver.on_bytes(frame);
    EXPECT_TRUE(inlet.sink.sends.empty());
    // A flipped T bit makes the header shorter and the frame as long as before: the CRC finds it.
    EXPECT_EQ(inlet.sink.log, std::vector<std::string>{"violation FpduCrcWrong"}) << bit;
  }
}

TEST(Receiver, does_not_look_at_the_CRC_field_when_CRCs_are_off) {
  Octets frame = fpdu("4143 00000000 00000000 00000001 00000000 cafe01");
  frame.back() = std::byte{0x55};
  Inlet inlet;
  inlet.receiver.on_bytes(frame);
  EXPECT_EQ(inlet.sink.sends.size(), 1u);
}

}  // namespace
}  // namespace stag::iwarp::test
