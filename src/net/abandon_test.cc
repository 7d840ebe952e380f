// What a process that gives up leaves to those who have the same sockets.
#include "net/abandon.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "net/listener.h"
#include "net/udp.h"

namespace stag::net {
namespace {

UniqueFd connected_to(const UniqueFd& listener) {
  SocketAddress address = SocketAddress::local_of(listener.fd());
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.fd(), address.data(), address.size()), 0);
  return socket;
}
bool sends(const UniqueFd& from, const UniqueFd& to) {
  SocketAddress address = SocketAddress::local_of(to.fd());
  return ::sendto(from.fd(), "x", 1, 0, address.data(), address.size()) == 1;
}
// A process that has all that this one has, and gives up.
void give_up_in_another_process() {
  const pid_t other = ::fork();
  if (other == 0) {
    abandon_sockets();
    ::_exit(EXIT_SUCCESS);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  ASSERT_EQ(status, 0);
}

TEST(Abandoning, ends_connections_for_every_process_that_has_them) {
  const UniqueFd listener = *listening_socket({"127.0.0.1", 0});
  const UniqueFd client = connected_to(listener);
  const UniqueFd accepted(::accept(listener.fd(), nullptr, nullptr));
  ASSERT_TRUE(accepted);
  give_up_in_another_process();
  std::array<char, 1> byte{};
  EXPECT_EQ(::recv(client.fd(), byte.data(), 1, 0), 0);
}
TEST(Abandoning, leaves_what_listens_to_a_successor) {
  const UniqueFd listener = *listening_socket({"127.0.0.1", 0});
  give_up_in_another_process();
  const UniqueFd client = connected_to(listener);
  const UniqueFd accepted(::accept(listener.fd(), nullptr, nullptr));
  EXPECT_TRUE(accepted);
}
TEST(Abandoning, leaves_what_is_bound_by_udp_to_a_successor) {
  const UniqueFd served = *bound_datagram_socket({"127.0.0.1", 0});
  const UniqueFd client = *bound_datagram_socket({"127.0.0.1", 0});
  give_up_in_another_process();
  EXPECT_TRUE(sends(client, served));
  EXPECT_TRUE(sends(served, client));
  std::array<char, 1> byte{};
  EXPECT_EQ(::recv(served.fd(), byte.data(), 1, 0), 1);
}
TEST(Abandoning, closes_the_process_own_sockets_and_nothing_else) {
  const pid_t other = ::fork();
  if (other == 0) {
    std::array<int, 2> pipe{};
    const UniqueFd listener = *listening_socket({"127.0.0.1", 0});
    if (::pipe(pipe.data()) != 0) ::_exit(1);
    abandon_sockets();
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(listener.fd(), SOL_SOCKET, SO_TYPE, &type, &size) == 0) ::_exit(2);
    ::_exit(::write(pipe[1], "x", 1) == 1 ? EXIT_SUCCESS : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace stag::net
