#include "cli/serve/served_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <utility>

#include "net/listener.h"
#include "net/socket_address.h"
#include "net/udp.h"

namespace stag::cli {
namespace {

// The next descriptor there is room for is the last one.
class RoomForOneDescriptor {
 public:
  RoomForOneDescriptor() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(next.fd()) + 1;
    setrlimit(RLIMIT_NOFILE, &less);
  }
  ~RoomForOneDescriptor() { setrlimit(RLIMIT_NOFILE, &before_); }
  RoomForOneDescriptor(const RoomForOneDescriptor&) = delete;
  RoomForOneDescriptor& operator=(const RoomForOneDescriptor&) = delete;

 private:
  rlimit before_{};
};

std::vector<UniqueFd> only(UniqueFd socket) {
  std::vector<UniqueFd> sockets;
  sockets.push_back(std::move(socket));
  return sockets;
}

Result<UniqueFd, Reason> socket_at(net::SocketUse use, const Address& at) {
  return use == net::SocketUse::Stream ? net::listening_socket(at) : net::bound_datagram_socket(at);
}

// A port that other programs use at no address of this machine.
std::uint16_t free_port(net::SocketUse use) {
  const auto everywhere = socket_at(use, {"0.0.0.0", 0});
  return everywhere.ok() ? net::SocketAddress::local_of(everywhere->fd()).address().port : 0;
}

TEST(ServedSockets, are_copied_all_or_not_at_all) {
  ServedSockets sockets;
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(sockets.open(net::SocketUse::Stream, {"127.0.0.1", 0}).ok());
  EXPECT_EQ(sockets.copies().size(), 2u);
  const RoomForOneDescriptor little;
  EXPECT_TRUE(sockets.copies().empty());
}

TEST(ServedSockets, are_made_before_they_are_wanted_where_none_is_inherited) {
  const auto use = net::SocketUse::Stream;
  auto other = net::listening_socket({"127.0.0.1", 0});
  ASSERT_TRUE(other.ok());
  const Address taken = net::SocketAddress::local_of(other->fd()).address();
  ServedSockets sockets;
  EXPECT_FALSE(sockets.reserve(use, taken).ok()) << "somebody else listens there";
  sockets.inherit(only(*std::move(other)));
  EXPECT_TRUE(sockets.reserve(use, taken).ok());
  EXPECT_TRUE(sockets.reserve(use, {"127.0.0.1", 0}).ok());
  EXPECT_TRUE(sockets.open(use, taken).ok());
  EXPECT_TRUE(sockets.close_unclaimed().empty());
}

TEST(ServedSockets, that_nobody_has_claimed_make_way_for_others_at_their_port) {
  const std::string one = "127.0.0.1", all = "0.0.0.0";
  for (const auto use : {net::SocketUse::Stream, net::SocketUse::Datagram})
    for (const auto& [before, now] : {std::pair(one, all), std::pair(all, one)}) {
      const Address passed{before, free_port(use)}, wanted{now, passed.port};
      auto other = socket_at(use, passed);
      ASSERT_TRUE(other.ok());
      ServedSockets sockets;
      sockets.inherit(only(*std::move(other)));
      ASSERT_TRUE(sockets.claim(use, wanted).ok());
      EXPECT_TRUE(sockets.reserve(use, wanted).ok()) << "it will be free";
      EXPECT_EQ(sockets.close_unclaimed(), std::vector{to_string(passed)});
      EXPECT_TRUE(sockets.open(use, wanted).ok());
    }
}

TEST(ServedSockets, that_are_wanted_or_of_others_make_way_for_nobody) {
  const auto use = net::SocketUse::Stream;
  auto ours = net::listening_socket({"127.0.0.1", 0}),
       others = net::listening_socket({"127.0.0.1", 0});
  ASSERT_TRUE(ours.ok() && others.ok());
  const Address passed = net::SocketAddress::local_of(ours->fd()).address();
  const Address taken = net::SocketAddress::local_of(others->fd()).address();
  ServedSockets sockets;
  sockets.inherit(only(*std::move(ours)));
  EXPECT_FALSE(sockets.reserve(use, {"0.0.0.0", taken.port}).ok());
  ASSERT_TRUE(sockets.claim(use, passed).ok());
  EXPECT_FALSE(sockets.reserve(use, {"0.0.0.0", passed.port}).ok());
}

TEST(ServedSockets, are_not_in_the_way_of_another_address_with_their_port) {
  for (const auto use : {net::SocketUse::Stream, net::SocketUse::Datagram}) {
    const Address passed{"127.0.0.1", free_port(use)}, wanted{"127.0.0.2", passed.port};
    auto ours = socket_at(use, passed), others = socket_at(use, wanted);
    ASSERT_TRUE(ours.ok() && others.ok());
    ServedSockets sockets;
    sockets.inherit(only(*std::move(ours)));
    EXPECT_FALSE(sockets.reserve(use, wanted).ok()) << "it will not be free";
  }
}

TEST(ServedSockets, that_are_passed_twice_are_used_once) {
  const auto use = net::SocketUse::Stream;
  auto one = net::listening_socket({"127.0.0.1", 0});
  ASSERT_TRUE(one.ok());
  const Address at = net::SocketAddress::local_of(one->fd()).address();
  ServedSockets sockets;
  sockets.inherit(only(UniqueFd(fcntl(one->fd(), F_DUPFD_CLOEXEC, 0))));
  sockets.inherit(only(*std::move(one)));
  ASSERT_TRUE(sockets.claim(use, at).ok());
  EXPECT_TRUE(sockets.close_unclaimed().empty());
  EXPECT_TRUE(sockets.open(use, at).ok());
  EXPECT_EQ(sockets.copies().size(), 1u);
  sockets.close();
  EXPECT_TRUE(net::listening_socket(at).ok()) << "nothing has it any more";
}

TEST(ServedSockets, are_made_for_datagrams_at_a_name_as_for_streams) {
  ServedSockets sockets;
  EXPECT_TRUE(sockets.open(net::SocketUse::Stream, {"localhost", 0}).ok());
  EXPECT_TRUE(sockets.open(net::SocketUse::Datagram, {"localhost", 0}).ok());
}

}  // namespace
}  // namespace stag::cli
