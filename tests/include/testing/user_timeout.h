// TCP's user timeout of connections whose descriptors a test does not have.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <optional>

#include "net/socket_address.h"

namespace stag::testing {

// In milliseconds, 0: none.
inline int user_timeout_of(int fd) {
  int limit = -1;
  socklen_t size = sizeof limit;
  getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &size);
  return limit;
}

// Of the socket of this process whose peer is at `peer`; nullopt: there is none.
inline std::optional<int> user_timeout_towards(const Address& peer) {
  constexpr int kMostFiles = 1024;
  for (int fd = 0; fd < kMostFiles; ++fd)
    if (net::SocketAddress::peer_of(fd).address() == peer) return user_timeout_of(fd);
  return std::nullopt;
}

}  // namespace stag::testing
