// What peers get that break the rules of a connection that is up.
#include <gtest/gtest.h>

#include "fabric/iwarp/service_test.h"

namespace stag::fabric::testing {
namespace {

// The error bytes of the Terminate that must come next, and then the end of the stream.
std::string terminate_and_end(RawPeer& peer) {
  const auto ulpdu = peer.receive_ulpdu();
  if (ulpdu.size() < iwarp::kUntaggedHeaderSize + 4) return "no Terminate";
  EXPECT_EQ(iwarp::decode_control(ulpdu.data()).opcode, 7);
  EXPECT_TRUE(peer.at_end());
  return hex(Bytes(ulpdu).subspan(iwarp::kUntaggedHeaderSize, 3));
}

struct BadStream {
  const char* what;
  std::vector<std::byte> bytes;
  const char* terminate;
  Reason reason;
};

std::vector<BadStream> bad_streams() {
  const auto hello = bytes_of("hello");
  const std::vector<std::byte> long_message(4097);
  auto wrong_offset = untagged(iwarp::Opcode::Send, 1, hello);
  wrong_offset[17] = std::byte{4};
  auto wrong_version = untagged(iwarp::Opcode::Send, 1, hello);
  wrong_version[0] = std::byte{0x42};
  return {
      {"a message too long", fpdu(untagged(iwarp::Opcode::Send, 1, long_message)), "12 05 c0",
       Reason::MessageTooLong},
      {"a wrong sequence number", fpdu(untagged(iwarp::Opcode::Send, 2, hello)), "12 03 c0",
       Reason::InvalidMsn},
      {"a wrong message offset", fpdu(wrong_offset), "12 04 c0", Reason::InvalidMo},
      {"an unknown DDP version", fpdu(wrong_version), "12 06 c0", Reason::DdpVersionWrong},
      {"a Write to an unknown STag", fpdu(tagged_write({99, 5, 0}, hello)), "11 00 c0",
       Reason::RemoteAccessDenied},
      {"a Read of an unknown STag", fpdu(read_request(1, {99, 8, 0})), "01 00 e0",
       Reason::RemoteAccessDenied},
      {"an FPDU too short for its header", unhex("0005 4143 000000 000000 00000000"), "20 03 00",
       Reason::FpduTooShort},
  };
}

TEST(Violation, is_answered_with_the_right_Terminate_and_ends_only_that_connection) {
  Service bystander;
  RawPeer other = RawPeer::connected(bystander.address());
  other.shake_hands();
  for (const BadStream& bad : bad_streams()) {
    SCOPED_TRACE(bad.what);
    Service service;
    service.answer.receive = {2, 4096};
    RawPeer peer = RawPeer::connected(service.address());
    peer.shake_hands();
    peer.send(bad.bytes);
    EXPECT_EQ(terminate_and_end(peer), bad.terminate);
    EXPECT_EQ(service.ended(), bad.reason) << to_string(bad.reason);
  }
  other.send(fpdu(untagged(iwarp::Opcode::Send, 1, bytes_of("still here"))));
  EXPECT_EQ(other.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, bytes_of("still here")));
}

TEST(Violation, reaches_a_peer_that_has_sent_much_more_than_was_read) {
  Service service;
  RawPeer peer = RawPeer::connected(service.address());
  peer.shake_hands();
  std::vector<std::byte> stream = fpdu(untagged(iwarp::Opcode::Send, 7, bytes_of("x")));
  stream.resize(stream.size() + 300'000);
  peer.send(stream);
  // Without a lingering close the system would answer the unread bytes with a reset.
  EXPECT_EQ(terminate_and_end(peer), "12 03 c0");
}

// What is left to write fits in where the peer has read a little; that there is room for more is
// told when the connection is gone. How much fits is the system's: one of these is right.
TEST(Violation, lets_a_peer_that_takes_the_rest_later_reach_nothing_of_the_connection) {
  static const std::vector<std::byte> data(1 << 20);
  constexpr std::size_t kLittle = 100'000, kHeld = 60'000;
  for (std::size_t size = 200'000; size < data.size(); size += 15'000) {
    IwarpOptions options;
    options.tcp.send_buffer = 200'000;
    Service service(options);
    RawPeer peer = RawPeer::connected(service.address());
    const int held = kHeld;
    setsockopt(peer.descriptor(), SOL_SOCKET, SO_RCVBUF, &held, sizeof held);
    peer.shake_hands();
    peer.send(fpdu(tagged_write({}, {})));
    service.with_connection([size](Connection& connection) {
      connection.write(Rope::borrow(data).slice(0, size), {7, 1 << 20, 0}, 1, kNoToken);
      return true;
    });
    service.turns(3);
    EXPECT_EQ(peer.receive(kLittle).size(), kLittle);
    peer.send(fpdu(tagged_write({99, 4, 0}, bytes_of("evil"))));
    EXPECT_EQ(service.ended(), Reason::RemoteAccessDenied);
    service.turns(2);
    // Up to the Terminate, or where the stream was cut.
    while (!peer.receive_ulpdu().empty()) continue;
    service.turns(3);
  }
}

TEST(Violation, is_found_in_the_CRC_and_told) {
  Service service;
  service.answer.crc = true;
  RawPeer peer = RawPeer::connected(service.address());
  peer.shake_hands();
  peer.send(fpdu(untagged(iwarp::Opcode::Send, 1, bytes_of("fine")), true));
  EXPECT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, bytes_of("fine")));
  auto damaged = fpdu(untagged(iwarp::Opcode::Send, 2, bytes_of("fine")), true);
  damaged[22] ^= std::byte{1};
  peer.send(damaged);
  EXPECT_EQ(terminate_and_end(peer), "20 02 00");
  EXPECT_EQ(service.ended(), Reason::FpduCrcWrong);
}

TEST(Violation, is_not_answered_when_the_peer_terminates_itself) {
  Service service;
  RawPeer peer = RawPeer::connected(service.address());
  peer.shake_hands();
  peer.send(fpdu(untagged(iwarp::Opcode::Terminate, 1, unhex("12 02 00 00"))));
  EXPECT_TRUE(peer.at_end());
  EXPECT_EQ(service.ended(), Reason::PeerReportedError);
}

TEST(Ending, tells_a_stream_cut_inside_an_FPDU_from_one_that_is_complete) {
  for (const bool cut : {false, true}) {
    Service service;
    RawPeer peer = RawPeer::connected(service.address());
    peer.shake_hands();
    const auto message = fpdu(untagged(iwarp::Opcode::Send, 1, bytes_of("hello")));
    peer.send(Bytes(message).first(message.size() - (cut ? 1 : 0)));
    peer.finish();
    EXPECT_EQ(service.ended(), cut ? Reason::ConnectionLost : Reason::ConnectionClosed);
  }
}

// A connection whose peer has asked for a long Read, takes nothing, and so has it stuck on its way.
class StuckRead : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kSize = 32 << 20;
  void start() {
    peer_.shake_hands();
    source_ = service_.with_connection(
        [&](Connection& connection) { return *connection.expose_source(*memory_); });
    peer_.send(fpdu(read_request(1, source_)));
    // What fits in the system's buffers has left as soon as some of it can be read.
    first_ = peer_.receive_ulpdu();
  }
  // Reads what comes and counts the bytes that are right, until something else comes.
  std::size_t right_bytes() {
    std::size_t right = 0;
    for (auto ulpdu = first_; !ulpdu.empty(); ulpdu = peer_.receive_ulpdu()) {
      last_ = ulpdu;
      if (iwarp::decode_control(ulpdu.data()).opcode != 2) break;
      const Bytes payload = Bytes(ulpdu).subspan(iwarp::kTaggedHeaderSize);
      for (const std::byte byte : payload) right += byte == std::byte{0x5a} ? 1 : 0;
    }
    return right;
  }

  // However much the system would buffer, most of the Response has still to leave.
  static IwarpOptions small_buffer() {
    IwarpOptions options;
    options.tcp.send_buffer = 64 * 1024;
    return options;
  }

  Service service_{small_buffer()};
  RawPeer peer_ = RawPeer::connected(service_.address());
  std::unique_ptr<std::vector<std::byte>> memory_ =
      std::make_unique<std::vector<std::byte>>(kSize, std::byte{0x5a});
  RemoteMemory source_;
  std::vector<std::byte> first_, last_;
};

TEST_F(StuckRead, revoked_is_cut_between_two_FPDUs_and_terminated_and_the_memory_is_free_at_once) {
  start();
  service_.with_connection([&](Connection& connection) {
    EXPECT_EQ(connection.revoke(source_.handle), Revocation::Done);
    std::fill(memory_->begin(), memory_->end(), std::byte{0});
    memory_.reset();
    return true;
  });
  const std::size_t right = right_bytes();
  EXPECT_GT(right, 0u);
  EXPECT_LT(right, kSize);
  EXPECT_EQ(right % 4, 0u);
  EXPECT_EQ(iwarp::decode_control(last_.data()).opcode, 7) << "no Terminate came";
}

TEST_F(StuckRead, ends_the_connection_when_its_abandoned_source_is_too_long_for_a_copy) {
  start();
  service_.with_connection([&](Connection& connection) {
    EXPECT_EQ(connection.abandon(source_.handle), Revocation::Done);
    memory_.reset();
    return true;
  });
  EXPECT_LT(right_bytes(), kSize);
  EXPECT_EQ(service_.ended(), Reason::AbandonedMemoryTooLong);
}

TEST_F(StuckRead, that_has_got_through_leaves_a_source_that_may_be_abandoned_however_long_it_is) {
  start();
  std::size_t read = 0;
  for (auto ulpdu = first_; !ulpdu.empty(); ulpdu = peer_.receive_ulpdu()) {
    read += ulpdu.size() - iwarp::kTaggedHeaderSize;
    if (read == kSize) break;
  }
  EXPECT_EQ(read, kSize);
  service_.with_connection([&](Connection& connection) {
    EXPECT_EQ(connection.abandon(source_.handle), Revocation::Done);
    memory_.reset();
    return true;
  });
  peer_.send(fpdu(untagged(iwarp::Opcode::Send, 1, bytes_of("hello"))));
  const auto echo = peer_.receive_ulpdu();
  ASSERT_FALSE(echo.empty()) << "the connection has ended";
  EXPECT_EQ(iwarp::decode_control(echo.data()).opcode, 3);
  peer_.send(fpdu(read_request(2, source_)));
  EXPECT_EQ(service_.ended(), Reason::RemoteAccessDenied);
}

TEST_F(StuckRead, gives_its_memory_back_when_the_peer_has_gone) {
  start();
  peer_.close();
  EXPECT_EQ(service_.ended(), Reason::ConnectionLost);
}

}  // namespace
}  // namespace stag::fabric::testing
