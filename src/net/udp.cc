#include "net/udp.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>

#include "net/loop.h"
#include "net/system_error.h"

namespace stag::net {

Result<UdpSocket, Reason> UdpSocket::open(AsioLoop& loop, const Address& at) {
  const auto address = numeric_address(at);
  if (!address) return Failure{Reason::HostNotFound};
  UniqueFd fd(::socket(address->family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Failure{reason_of_errno(errno)};
  const int off = 0;
  if (address->family() == AF_INET6)
    setsockopt(fd.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd.fd(), address->data(), address->size()) != 0)
    return Failure{reason_of_errno(errno)};
  auto watched = Descriptor::watch(loop, std::move(fd));
  if (!watched) return Failure{watched.error()};
  return UdpSocket(*std::move(watched));
}

Result<Ok, Reason> UdpSocket::send_to(Bytes datagram, const SocketAddress& to) {
  const ssize_t sent = ::sendto(descriptor_.fd(), datagram.data(), datagram.size(),
                                MSG_DONTWAIT | MSG_NOSIGNAL, to.data(), to.size());
  if (sent < 0 && errno != EAGAIN) return Failure{reason_of_errno(errno)};
  return Ok{};
}

Result<std::optional<Datagram>, Reason> UdpSocket::try_receive(MutableBytes to) {
  sockaddr_storage from{};
  iovec piece{to.data(), to.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const ssize_t size = recvmsg(descriptor_.fd(), &message, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Datagram>();
  if (size < 0) return Failure{reason_of_errno(errno)};
  if ((message.msg_flags & MSG_TRUNC) != 0) return Failure{Reason::DatagramTooLong};
  return std::optional<Datagram>(
      Datagram{static_cast<std::size_t>(size),
               SocketAddress(reinterpret_cast<sockaddr*>(&from), message.msg_namelen)});
}

}  // namespace stag::net
