// The passive side against peers that are nothing but bytes.
#include <gtest/gtest.h>

#include "fabric/iwarp/service_test.h"

namespace stag::fabric::testing {
namespace {

const std::vector<std::byte> kHello = unhex("68 65 6c 6c 6f");

TEST(Passive, answers_the_request_of_a_Linux_client_in_its_form) {
  Service service;
  RawPeer peer = RawPeer::connected(service.address());
  // As captured: IRD 128, ORD 0, RPC-over-RDMA private data.
  peer.send(unhex("4d504120494420526571204672616d65 10 02 000c 0080 0000 f6ab0e18 01010303"));
  // The answer's ORD is what we wished, within the client's IRD; IRD 0, as the client will not
  // read.
  EXPECT_EQ(hex(peer.receive(24)),
            "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65 10 02 00 04 00 00 00 20");
  peer.send(fpdu(untagged(iwarp::Opcode::Send, 1, kHello)));
  EXPECT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, kHello));
}

TEST(Passive, takes_everything_byte_by_byte) {
  Service service;
  RawPeer peer = RawPeer::connected(service.address());
  std::vector<std::byte> stream = unhex(kRequest);
  const auto first = fpdu(untagged(iwarp::Opcode::Send, 1, kHello));
  stream.insert(stream.end(), first.begin(), first.end());
  for (const std::byte byte : stream) peer.send(Bytes(&byte, 1));
  EXPECT_EQ(peer.receive(24).size(), 24u);
  EXPECT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, kHello));
}

TEST(Passive, tells_of_answers_that_left_early_before_it_reads_more) {
  constexpr std::uint32_t kMessages = 180;
  Service service;
  service.answer.receive = {kMessages, 4096};
  RawPeer peer = RawPeer::connected(service.address());
  peer.shake_hands();
  const std::vector<std::byte> message(600);
  std::vector<std::byte> stream;
  for (std::uint32_t i = 1; i <= kMessages; ++i) {
    const auto next = fpdu(untagged(iwarp::Opcode::Send, i, message));
    stream.insert(stream.end(), next.begin(), next.end());
  }
  // All is there before the service looks: it reads 16 KiB, 64 KiB, and the rest.
  std::promise<void> sent;
  service.loop().post([&] { sent.get_future().wait(); });
  peer.send(stream);
  sent.set_value();
  for (std::uint32_t i = 1; i <= kMessages; ++i)
    ASSERT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, i, message));
  EXPECT_LT(service.most_under_way(), 130u);
}

TEST(Passive, serves_a_first_FPDU_that_comes_with_the_request) {
  Service service;
  RawPeer peer = RawPeer::connected(service.address());
  std::vector<std::byte> stream = unhex(kRequest);
  const auto first = fpdu(untagged(iwarp::Opcode::Send, 1, kHello));
  stream.insert(stream.end(), first.begin(), first.end());
  peer.send(stream);
  EXPECT_EQ(peer.receive(24).size(), 24u);
  EXPECT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, kHello));
}

TEST(Passive, says_nothing_behind_its_reply_before_the_first_FPDU) {
  Service service;
  service.greeting = "too early";
  RawPeer peer = RawPeer::connected(service.address());
  peer.shake_hands();
  // The greeting is posted by now, and would have left in the turns since.
  service.turns(10);
  EXPECT_FALSE(peer.has_bytes());
  // A Write of no bytes is a first FPDU as well.
  peer.send(fpdu(tagged_write({}, {})));
  EXPECT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, bytes_of("too early")));
}

// RFC 5044 section 3: MULPDU is 128 to 64768 octets.
TEST(Passive, sends_no_ULPDU_beyond_the_bounds_of_MULPDU_whatever_the_options_say) {
  static const std::vector<std::byte> data(70000);
  for (const std::size_t wish : {std::size_t{0}, IwarpOptions().max_ulpdu, std::size_t{65535}}) {
    IwarpOptions options;
    options.max_ulpdu = wish;
    Service service(options);
    RawPeer peer = RawPeer::connected(service.address());
    peer.shake_hands();
    peer.send(fpdu(tagged_write({}, {})));
    service.with_connection([](Connection& connection) {
      connection.write(Rope::borrow(data), {7, 70000, 0}, 1, kNoToken);
      return true;
    });
    std::size_t longest = 0;
    for (std::size_t left = data.size(); left > 0;) {
      const std::size_t size = peer.receive_ulpdu().size();
      ASSERT_GT(size, iwarp::kTaggedHeaderSize);
      left -= size - iwarp::kTaggedHeaderSize;
      longest = std::max(longest, size);
    }
    EXPECT_EQ((longest + 3) & ~std::size_t{3}, wish == 0 ? 128u : 64768u);
  }
}

TEST(Passive, closes_without_an_answer_on_what_is_no_MPA_request) {
  Service service;
  for (const char* garbage : {
           "47 45 54 20 2f 20 48 54 54 50 2f 31 2e 31 0d 0a 0d 0a 0d 0a",  // another protocol
           "4d504120494420526570204672616d65 10 02 0004",                  // a Reply
           "4d504120494420526571204672616d65 10 03 0004",                  // revision 3
           "4d504120494420526571204672616d65 10 02 0201",  // 513 bytes of private data
           "4d504120494420526571204672616d65 10 02 0003",  // no room for IRD and ORD
       }) {
    RawPeer peer = RawPeer::connected(service.address());
    peer.send(unhex(garbage));
    EXPECT_TRUE(peer.at_end()) << garbage;
  }
  EXPECT_EQ(service.connections(), 0u);
}

TEST(Passive, tells_a_peer_it_turns_down_in_an_MPA_reply) {
  Service service;
  service.refusal = Reason::Shutdown;
  RawPeer peer = RawPeer::connected(service.address());
  peer.send(unhex(kRequest));
  const auto reply = peer.receive(24);
  ASSERT_EQ(reply.size(), 24u);
  EXPECT_EQ(hex(Bytes(reply).subspan(16, 4)), "30 02 00 04");
  EXPECT_TRUE(peer.at_end());
}

TEST(Passive, gives_up_on_a_request_that_stays_incomplete) {
  ListenOptions listening;
  listening.setup_timeout = std::chrono::milliseconds(5);
  Service service({}, listening);
  RawPeer peer = RawPeer::connected(service.address());
  peer.send(Bytes(unhex(kRequest)).first(23));
  EXPECT_TRUE(peer.at_end());
}

TEST(Passive, drops_the_oldest_of_too_many_half_open_connections_and_serves_the_rest) {
  IwarpOptions options;
  options.max_half_open = 2;
  Service service(options);
  RawPeer first = RawPeer::connected(service.address());
  RawPeer second = RawPeer::connected(service.address());
  RawPeer third = RawPeer::connected(service.address());
  EXPECT_TRUE(first.at_end());
  second.shake_hands();
  third.shake_hands();
}

TEST(Passive, turns_away_connections_beyond_the_limit_until_one_has_gone) {
  ListenOptions listening;
  listening.max_connections = 1;
  Service service({}, listening);
  RawPeer first = RawPeer::connected(service.address());
  first.shake_hands();
  RawPeer second = RawPeer::connected(service.address());
  EXPECT_TRUE(second.at_end());
  EXPECT_GE(reason_counters().of(Reason::TooManyConnections), 1u);
}

TEST(Passive, drops_the_oldest_half_open_connection_where_all_places_are_taken) {
  ListenOptions listening;
  listening.max_connections = 4;
  listening.max_connections_per_peer = 2;
  Service service({}, listening);
  RawPeer first = RawPeer::connected(service.address(), "127.0.0.2");
  first.shake_hands();
  RawPeer silent = RawPeer::connected(service.address(), "127.0.0.2");
  RawPeer silent_too = RawPeer::connected(service.address(), "127.0.0.3");
  RawPeer slow = RawPeer::connected(service.address(), "127.0.0.3");
  // None for an address that has its share, and nobody goes for it.
  RawPeer more = RawPeer::connected(service.address(), "127.0.0.3");
  EXPECT_TRUE(more.at_end());
  RawPeer client = RawPeer::connected(service.address());
  client.shake_hands();
  EXPECT_TRUE(silent.at_end());
  RawPeer client_too = RawPeer::connected(service.address());
  client_too.shake_hands();
  EXPECT_TRUE(silent_too.at_end());
  slow.shake_hands();
  // No connection is half open any more.
  RawPeer late = RawPeer::connected(service.address(), "127.0.0.4");
  EXPECT_TRUE(late.at_end());
  for (RawPeer* each : {&first, &client, &client_too, &slow}) {
    each->send(fpdu(untagged(iwarp::Opcode::Send, 1, kHello)));
    EXPECT_EQ(each->receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, kHello));
  }
}

TEST(Passive, turns_away_connections_of_an_address_that_has_its_share_until_one_has_gone) {
  ListenOptions listening;
  listening.max_connections_per_peer = 1;
  Service service({}, listening);
  const std::uint64_t before = reason_counters().of(Reason::TooManyConnectionsOfPeer);
  {
    RawPeer first = RawPeer::connected(service.address());
    first.shake_hands();
    RawPeer second = RawPeer::connected(service.address());
    EXPECT_TRUE(second.at_end());
    EXPECT_GT(reason_counters().of(Reason::TooManyConnectionsOfPeer), before);
    // Another address has places of its own.
    RawPeer other = RawPeer::connected(service.address(), "127.0.0.2");
    other.shake_hands();
  }
  service.ended();
  RawPeer again = RawPeer::connected(service.address());
  again.shake_hands();
}

TEST(Passive, ends_unfinished_set_ups_with_the_listener) {
  Service service;
  RawPeer peer = RawPeer::connected(service.address());
  peer.send(Bytes(unhex(kRequest)).first(10));
  RawPeer other = RawPeer::connected(service.address());
  other.shake_hands();  // By now the first one is accepted as well.
  service.stop_listening();
  EXPECT_TRUE(peer.at_end());
  other.send(fpdu(untagged(iwarp::Opcode::Send, 1, kHello)));
  EXPECT_EQ(other.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, kHello));
}

// Finds no memory for its first request, nor for its first connection.
struct Forgetful final : Acceptor {
  Result<ConnectOptions, Reason> on_connect_request(const ConnectRequest&) override {
    if (++requests == 1) throw std::bad_alloc();
    return ConnectOptions();
  }
  void on_connection(std::unique_ptr<Connection> connection) override {
    if (++connections == 1) throw std::bad_alloc();
    arrived.set_value(std::move(connection));
  }
  int requests = 0, connections = 0;
  std::promise<std::unique_ptr<Connection>> arrived;
};

TEST(Passive, loses_only_the_connections_for_which_its_owner_finds_no_memory) {
  for (const bool elsewhere : {false, true}) {
    net::LoopThread listening, other;
    IwarpFabric fabric(listening.loop(), {}, {elsewhere ? &other.loop() : &listening.loop()});
    Forgetful owner;
    std::unique_ptr<Listener> listener;
    on_loop(listening.loop(), [&] {
      listener = *fabric.listen({"127.0.0.1", 0}, {}, owner);
      return true;
    });
    RawPeer first = RawPeer::connected(listener->local_address());
    first.send(unhex(kRequest));
    EXPECT_TRUE(first.at_end());
    RawPeer second = RawPeer::connected(listener->local_address());
    second.shake_hands();
    EXPECT_TRUE(second.at_end());
    RawPeer third = RawPeer::connected(listener->local_address());
    third.shake_hands();
    std::unique_ptr<Connection> connection = owner.arrived.get_future().get();
    on_loop(connection->loop(), [&] {
      connection.reset();
      return true;
    });
    on_loop(listening.loop(), [&] {
      listener.reset();
      return true;
    });
  }
}

TEST(Passive, serves_a_peer_that_knows_only_revision_1_and_refuses_it_when_told_to) {
  Service service;
  RawPeer old = RawPeer::connected(service.address());
  old.send(unhex("4d504120494420526571204672616d65 00 01 0000"));
  EXPECT_EQ(hex(Bytes(old.receive(20)).subspan(16)), "00 01 00 00");
  old.send(fpdu(untagged(iwarp::Opcode::Send, 1, kHello)));
  EXPECT_EQ(old.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, kHello));

  IwarpOptions strict;
  strict.accept_unenhanced = false;
  Service modern(strict);
  RawPeer refused = RawPeer::connected(modern.address());
  refused.send(unhex("4d504120494420526571204672616d65 00 01 0000"));
  EXPECT_TRUE(refused.at_end());
}

// What lingers of them is a socket like others.
TEST(Passive, counts_connectors_that_it_rejects_until_their_sockets_are_closed) {
  ListenOptions listening;
  listening.max_connections = listening.max_connections_per_peer = 4;
  Service service({}, listening);
  service.refusal = Reason::PeerNotAllowed;
  const auto is_answered = [](RawPeer& peer) {
    peer.send(unhex(kRequest));
    return !peer.at_end();
  };
  std::vector<RawPeer> peers;
  int answered = 0;
  constexpr int kMany = 60;
  for (int i = 0; i < kMany; ++i) {
    peers.push_back(RawPeer::connected(service.address()));
    if (is_answered(peers.back())) ++answered;
  }
  EXPECT_GE(answered, 4);
  EXPECT_LT(answered, kMany);
  peers.clear();
  for (bool free = false; !free;) {
    RawPeer next = RawPeer::connected(service.address());
    free = is_answered(next);
  }
}

}  // namespace
}  // namespace stag::fabric::testing
