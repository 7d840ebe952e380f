// Sockets and words that go from process to process.
#include "net/passed_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "net/listener.h"
#include "net/udp.h"

namespace stag::net {
namespace {

class PassedSockets : public ::testing::Test {
 protected:
  PassedSockets() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  static SocketAddress address_of(const UniqueFd& socket) {
    return SocketAddress::local_of(socket.fd());
  }
  UniqueFd ours, theirs;
};

TEST_F(PassedSockets, that_do_not_come_in_time_are_told_in_words_about_the_other_side) {
  ::fcntl(theirs.fd(), F_SETFL, O_NONBLOCK);
  const auto passed = receive_with_sockets(theirs.fd(), 100);
  ASSERT_FALSE(passed.ok());
  EXPECT_EQ(passed.error(), "no answer has come; is it stopped, or its machine too busy?");
}

TEST_F(PassedSockets, arrive_with_the_text_and_are_the_same_sockets) {
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 2; ++i) sockets.push_back(*listening_socket({"127.0.0.1", 0}));
  ASSERT_TRUE(send_with_sockets(ours.fd(), "two\n", sockets));
  const auto passed = receive_with_sockets(theirs.fd(), 100);
  ASSERT_TRUE(passed) << passed.error();
  EXPECT_EQ(passed->text, "two\n");
  ASSERT_EQ(passed->sockets.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(address_of(passed->sockets[i]).address(), address_of(sockets[i]).address());
    EXPECT_NE(fcntl(passed->sockets[i].fd(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(PassedSockets, may_be_none) {
  ASSERT_TRUE(send_with_sockets(ours.fd(), "text", {}));
  const auto passed = receive_with_sockets(theirs.fd(), 100);
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->text, "text");
  EXPECT_TRUE(passed->sockets.empty());
}

TEST_F(PassedSockets, are_not_sent_to_a_peer_that_is_gone) {
  theirs = UniqueFd();
  EXPECT_FALSE(send_with_sockets(ours.fd(), "text", {}));
}

TEST_F(PassedSockets, serve_at_their_address_and_for_their_use_only) {
  const UniqueFd stream = *listening_socket({"127.0.0.1", 0});
  const UniqueFd datagram = *bound_datagram_socket({"127.0.0.1", 0});
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(serves_at(stream.fd(), SocketUse::Stream, address_of(stream)));
  EXPECT_TRUE(serves_at(datagram.fd(), SocketUse::Datagram, address_of(datagram)));
  EXPECT_FALSE(serves_at(stream.fd(), SocketUse::Datagram, address_of(stream)));
  EXPECT_FALSE(serves_at(datagram.fd(), SocketUse::Stream, address_of(datagram)));
  EXPECT_FALSE(serves_at(stream.fd(), SocketUse::Stream, address_of(datagram)));
  EXPECT_FALSE(serves_at(silent.fd(), SocketUse::Stream, address_of(silent)));
  EXPECT_FALSE(serves_at(-1, SocketUse::Stream, address_of(stream)));
}

TEST_F(PassedSockets, are_in_the_way_of_others_with_their_port_that_an_address_of_theirs_covers) {
  EXPECT_TRUE(overlaps({"127.0.0.1", 7}, {"127.0.0.1", 7}));
  EXPECT_FALSE(overlaps({"127.0.0.1", 7}, {"127.0.0.1", 8}));
  EXPECT_FALSE(overlaps({"127.0.0.1", 7}, {"127.0.0.2", 7}));
  for (const char* host : {"127.0.0.1", "0.0.0.0", "::1"}) {
    EXPECT_TRUE(overlaps({"::", 7}, {host, 7})) << "it takes IPv4, too";
    EXPECT_TRUE(overlaps({host, 7}, {"::", 7}));
  }
  EXPECT_TRUE(overlaps({"0.0.0.0", 7}, {"127.0.0.1", 7}));
  EXPECT_TRUE(overlaps({"127.0.0.1", 7}, {"0.0.0.0", 7}));
  EXPECT_FALSE(overlaps({"0.0.0.0", 7}, {"::1", 7}));
  const UniqueFd stream = *listening_socket({"127.0.0.1", 0});
  EXPECT_TRUE(is_in_the_way(stream.fd(), SocketUse::Stream, address_of(stream)));
  EXPECT_FALSE(is_in_the_way(stream.fd(), SocketUse::Datagram, address_of(stream)));
}

TEST_F(PassedSockets, are_for_the_process_that_the_service_manager_names) {
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", "1", 1);
  EXPECT_TRUE(sockets_from_service_manager().empty());
  EXPECT_EQ(std::getenv("LISTEN_FDS"), nullptr);
  for (const char* number : {"", "many", "-1", "1000000"}) {
    setenv("LISTEN_FDS", number, 1);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    EXPECT_TRUE(sockets_from_service_manager().empty()) << number;
  }
}

TEST(LocalDatagram, reaches_an_abstract_name) {
  const std::string name = "@stag-test-" + std::to_string(getpid());
  EXPECT_FALSE(send_datagram(name, "READY=1")) << "nobody is there";
  const UniqueFd receiver(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::array<char, 110> at{};
  at[0] = AF_UNIX;
  std::copy(name.begin() + 1, name.end(), at.begin() + 3);
  ASSERT_EQ(::bind(receiver.fd(), reinterpret_cast<const sockaddr*>(at.data()),
                   static_cast<socklen_t>(2 + name.size())),
            0);
  ASSERT_TRUE(send_datagram(name, "READY=1"));
  EXPECT_EQ(receive_with_sockets(receiver.fd(), 100)->text, "READY=1");
}

TEST(LocalDatagram, needs_a_name_that_can_be_one) {
  for (const std::string& name :
       {std::string("relative"), std::string("@"), std::string(), "/" + std::string(200, 'x')})
    EXPECT_FALSE(send_datagram(name, "text")) << name;
}

}  // namespace
}  // namespace stag::net
