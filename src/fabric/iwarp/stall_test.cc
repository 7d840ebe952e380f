// Peers that stop: in the middle of a message, before they have answered, without taking what is
// sent to them. How slow they may be is StallWatch's.
#include <gtest/gtest.h>

#include <thread>

#include "fabric/iwarp/service_test.h"
#include "testing/user_timeout.h"

namespace stag::fabric::testing {
namespace {

using namespace std::chrono_literals;

class Stall : public ::testing::Test {
 protected:
  Stall() {
    service.answer.stall_limit = 20ms;
    service.answer.receive = {16, 70'000};
    service.answer.outbound_reads = 8;
    peer.shake_hands();
  }
  // Begins with a Send, which is echoed.
  void greet() {
    peer.send(fpdu(untagged(iwarp::Opcode::Send, 1, bytes_of("hello"))));
    ASSERT_EQ(peer.receive_ulpdu().size(), iwarp::kUntaggedHeaderSize + 5);
  }
  // Has the service read 100 bytes of ours, and takes the Read Request.
  iwarp::ReadRequest be_asked() {
    service.with_connection([this](Connection& connection) {
      connection.read({7, 100, 0}, sink, 1, Token{1});
      return true;
    });
    const auto ulpdu = peer.receive_ulpdu();
    return iwarp::decode_read_request(ulpdu.data() + iwarp::kUntaggedHeaderSize);
  }
  static std::vector<std::byte> read_response(const iwarp::ReadRequest& request, std::size_t size,
                                              bool last) {
    auto ulpdu = tagged_write({request.sink_stag, request.size, request.sink_offset},
                              std::vector<std::byte>(size));
    iwarp::Control control;
    control.tagged = true;
    control.last = last;
    control.opcode = static_cast<std::uint8_t>(iwarp::Opcode::ReadResponse);
    iwarp::encode_tagged({control, request.sink_stag, request.sink_offset}, ulpdu.data());
    return ulpdu;
  }

  std::array<std::byte, 100> sink;
  Service service;
  RawPeer peer = RawPeer::connected(service.address());
};

TEST_F(Stall, ends_the_connection_of_a_peer_that_takes_nothing) {
  static const std::vector<std::byte> data(32 << 20);
  greet();
  service.with_connection([](Connection& connection) {
    connection.write(Rope::borrow(data), {7, 32 << 20, 0}, 1, kNoToken);
    return true;
  });
  EXPECT_EQ(service.ended(), Reason::PeerStalled);
}

// The stream lingers, with bytes that are still to be written: the connection itself is gone.
TEST_F(Stall, lets_a_peer_that_goes_on_later_reach_nothing_of_the_connection) {
  static const std::vector<std::byte> data(32 << 20);
  greet();
  service.with_connection([](Connection& connection) {
    connection.write(Rope::borrow(data), {7, 32 << 20, 0}, 1, kNoToken);
    return true;
  });
  EXPECT_EQ(service.ended(), Reason::PeerStalled);
  service.turns(2);
  peer.send(fpdu(tagged_write({}, {})));
  service.turns(10);
}

// All of it is in the socket: the fabric has nothing left to write.
TEST_F(Stall, is_seen_where_the_system_has_taken_all_of_a_Send_and_the_peer_nothing) {
  const int little = 4096;
  greet();
  setsockopt(peer.descriptor(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  service.with_connection([](Connection& connection) {
    connection.send(Rope::copy_of(std::vector<std::byte>(500'000)), std::nullopt, 1, kNoToken);
    return true;
  });
  EXPECT_EQ(service.ended(), Reason::PeerStalled);
}

TEST_F(Stall, ends_the_connection_within_an_FPDU) {
  const auto message = fpdu(untagged(iwarp::Opcode::Send, 1, std::vector<std::byte>(6000)));
  for (const std::size_t cut :
       {std::size_t{1}, std::size_t{10}, std::size_t{20}, std::size_t{3000}, message.size() - 1}) {
    Service other;
    other.answer.stall_limit = 5ms;
    other.answer.receive = {16, 70'000};
    RawPeer stopping = RawPeer::connected(other.address());
    stopping.shake_hands();
    stopping.send(Bytes(message).first(cut));
    EXPECT_EQ(other.ended(), Reason::PeerMessageUnfinished) << cut;
  }
}

TEST_F(Stall, ends_the_connection_between_the_segments_of_a_Send) {
  auto first = untagged(iwarp::Opcode::Send, 1, std::vector<std::byte>(1000));
  first[0] &= ~std::byte{0x40};  // not the last
  peer.send(fpdu(first));
  EXPECT_EQ(service.ended(), Reason::PeerMessageUnfinished);
}

// Other messages between them do not hide it.
TEST_F(Stall, is_seen_for_a_Send_among_Writes_that_come_all_the_time) {
  auto first = untagged(iwarp::Opcode::Send, 1, std::vector<std::byte>(1000));
  first[0] &= ~std::byte{0x40};
  peer.send(fpdu(first));
  const auto write = fpdu(tagged_write({}, {}));
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    while (!ended) {
      peer.send(write);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(service.ended(), Reason::PeerMessageUnfinished);
  ended = true;
  writer.join();
}

TEST_F(Stall, ends_the_connection_between_the_FPDUs_of_a_Write) {
  greet();
  static std::array<std::byte, 64> memory;
  const RemoteMemory exposed = service.with_connection(
      [](Connection& connection) { return *connection.expose_sink(memory); });
  auto first = tagged_write(exposed, std::vector<std::byte>(32));
  first[0] &= ~std::byte{0x40};
  peer.send(fpdu(first));
  EXPECT_EQ(service.ended(), Reason::PeerMessageUnfinished);
}

TEST_F(Stall, ends_the_connection_of_a_Read_that_is_never_answered) {
  greet();
  be_asked();
  EXPECT_EQ(service.ended(), Reason::PeerStalled);
}

TEST_F(Stall, is_seen_for_a_Read_among_Writes_that_come_all_the_time) {
  greet();
  be_asked();
  const auto write = fpdu(tagged_write({}, {}));
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    while (!ended) {
      peer.send(write);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(service.ended(), Reason::PeerStalled);
  ended = true;
  writer.join();
}

TEST_F(Stall, ends_the_connection_within_a_Read_Response) {
  greet();
  peer.send(fpdu(read_response(be_asked(), 40, false)));
  EXPECT_EQ(service.ended(), Reason::PeerStalled);
}

// To the system a window that is closed is a peer that has vanished, whatever it acknowledges.
TEST(SlowPeer, is_not_cut_by_the_system_before_the_stall_limit_says_so) {
  for (const Duration limit : {Duration(0s), Duration(60s), Duration(600s)}) {
    Service service;
    service.answer.stall_limit = limit;
    RawPeer peer = RawPeer::connected(service.address());
    peer.shake_hands();
    service.turns(2);
    const Address at = net::SocketAddress::local_of(peer.descriptor()).address();
    EXPECT_EQ(stag::testing::user_timeout_towards(at), 0)
        << std::chrono::duration_cast<std::chrono::seconds>(limit).count();
  }
}

// The limit is longer than a system takes its time to acknowledge what came last.
TEST(IdlePeer, keeps_its_connection_beyond_the_stall_limit) {
  const auto hello = [](std::uint32_t sequence) {
    return fpdu(untagged(iwarp::Opcode::Send, sequence, bytes_of("hello")));
  };
  Service service;
  service.answer.stall_limit = 300ms;
  service.answer.receive = {2, 4096};
  RawPeer peer = RawPeer::connected(service.address());
  peer.shake_hands();
  peer.send(hello(1));
  EXPECT_EQ(peer.receive_ulpdu().size(), iwarp::kUntaggedHeaderSize + 5);
  std::promise<void> passed;
  Timer timer;
  on_loop(service.loop(), [&] {
    timer = service.loop().after(700ms, [&] { passed.set_value(); });
    return true;
  });
  passed.get_future().wait();
  peer.send(hello(2));
  EXPECT_EQ(peer.receive_ulpdu().size(), iwarp::kUntaggedHeaderSize + 5);
}

}  // namespace
}  // namespace stag::fabric::testing
