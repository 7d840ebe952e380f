#include "net/udp.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/loop.h"
#include "net/system_error.h"

namespace stag::net {
namespace {

using SocketResult = Result<UniqueFd, Reason>;

// Room for one control message of either family.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in6_pktinfo))> bytes{};
};

// Datagrams tell which of the machine's addresses they were sent to.
void ask_for_arrivals(int fd, int family) {
  const int on = 1;
  if (family == AF_INET6)
    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  else
    setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
}

SocketResult datagram_socket(const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Failure{reason_of_errno(errno)};
  const int off = 0;
  if (address.family() == AF_INET6)
    setsockopt(fd.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  ask_for_arrivals(fd.fd(), address.family());
  return fd;
}

template <class T>
T contents_of(const cmsghdr* item) {
  T value;
  std::memcpy(&value, CMSG_DATA(item), sizeof value);
  return value;
}

SocketAddress arrival_of(msghdr& message) {
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_PKTINFO) {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr = contents_of<in_pktinfo>(item).ipi_spec_dst;
      return SocketAddress(reinterpret_cast<sockaddr*>(&at), sizeof at);
    }
    if (item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_PKTINFO) {
      const auto arrived = contents_of<in6_pktinfo>(item);
      sockaddr_in6 at{};
      at.sin6_family = AF_INET6;
      at.sin6_addr = arrived.ipi6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&at.sin6_addr)) at.sin6_scope_id = arrived.ipi6_ifindex;
      return SocketAddress(reinterpret_cast<sockaddr*>(&at), sizeof at);
    }
  }
  return {};
}

template <class T>
void put(Control& control, msghdr& message, int level, int type, const T& contents) {
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(sizeof contents);
  cmsghdr* item = CMSG_FIRSTHDR(&message);
  item->cmsg_level = level;
  item->cmsg_type = type;
  item->cmsg_len = CMSG_LEN(sizeof contents);
  std::memcpy(CMSG_DATA(item), &contents, sizeof contents);
}

void put_source(const SocketAddress& from, Control& control, msghdr& message) {
  if (from.family() == AF_INET) {
    in_pktinfo info{};
    info.ipi_spec_dst = reinterpret_cast<const sockaddr_in*>(from.data())->sin_addr;
    put(control, message, IPPROTO_IP, IP_PKTINFO, info);
  } else if (from.family() == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(from.data());
    in6_pktinfo info{};
    info.ipi6_addr = v6->sin6_addr;
    info.ipi6_ifindex = v6->sin6_scope_id;
    put(control, message, IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
}

}  // namespace

SocketResult bound_datagram_socket(const Address& at) {
  const auto addresses = resolve_blocking(at);
  if (!addresses) return Failure{addresses.error()};
  const SocketAddress& address = addresses->front();
  SocketResult fd = datagram_socket(address);
  if (fd && ::bind(fd->fd(), address.data(), address.size()) != 0)
    return Failure{reason_of_errno(errno)};
  return fd;
}

Result<UdpSocket, Reason> UdpSocket::open(EpollLoop& loop, const Address& at) {
  SocketResult fd = bound_datagram_socket(at);
  if (!fd) return Failure{fd.error()};
  return adopt(loop, *std::move(fd));
}

Result<UdpSocket, Reason> UdpSocket::adopt(EpollLoop& loop, UniqueFd bound) {
  ask_for_arrivals(bound.fd(), SocketAddress::local_of(bound.fd()).family());
  auto watched = Descriptor::watch(loop, std::move(bound));
  if (!watched) return Failure{watched.error()};
  return UdpSocket(*std::move(watched));
}

Result<UdpSocket, Reason> UdpSocket::connect(EpollLoop& loop, const SocketAddress& peer,
                                             const std::string& from) {
  SocketResult fd = datagram_socket(peer);
  if (!fd) return Failure{fd.error()};
  net::leave_from(fd->fd(), from, peer);
  if (::connect(fd->fd(), peer.data(), peer.size()) != 0) return Failure{reason_of_errno(errno)};
  auto watched = Descriptor::watch(loop, *std::move(fd));
  if (!watched) return Failure{watched.error()};
  return UdpSocket(*std::move(watched));
}

Result<Ok, Reason> UdpSocket::send_to(Bytes datagram, const SocketAddress& to,
                                      const SocketAddress& from) {
  iovec piece{const_cast<std::byte*>(datagram.data()), datagram.size()};
  SocketAddress target = to;
  Control control;
  msghdr message{};
  if (to.size() > 0) {
    message.msg_name = target.data();
    message.msg_namelen = target.size();
  }
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  put_source(from, control, message);
  const ssize_t sent = sendmsg(descriptor_.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return Failure{reason_of_errno(errno)};
  return Ok{};
}

Result<std::optional<Datagram>, Reason> UdpSocket::try_receive(MutableBytes to) {
  sockaddr_storage from{};
  iovec piece{to.data(), to.size()};
  Control control;
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t size = recvmsg(descriptor_.fd(), &message, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    if (errno == EAGAIN) descriptor_.mark_unreadable();
    return std::optional<Datagram>();
  }
  if (size < 0) return Failure{reason_of_errno(errno)};
  if ((message.msg_flags & MSG_TRUNC) != 0) return Failure{Reason::DatagramTooLong};
  return std::optional<Datagram>(Datagram{
      static_cast<std::size_t>(size),
      SocketAddress(reinterpret_cast<sockaddr*>(&from), message.msg_namelen), arrival_of(message)});
}

}  // namespace stag::net
