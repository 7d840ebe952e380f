#include "net/passed_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace stag::net {
namespace {

constexpr int kFirstPassed = 3;  // SD_LISTEN_FDS_START

std::string words_of(int error) {
  return std::strerror(error);
}

struct RightsBuffer {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostPassed * sizeof(int))> bytes{};
};

// The control message of `sockets`, which is in `control`.
void put_rights(msghdr& message, RightsBuffer& control, std::span<const UniqueFd> sockets) {
  if (sockets.empty()) return;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(sockets.size() * sizeof(int));
  cmsghdr* item = CMSG_FIRSTHDR(&message);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(sockets.size() * sizeof(int));
  unsigned char* at = CMSG_DATA(item);
  for (const UniqueFd& socket : sockets) {
    const int fd = socket.fd();
    std::memcpy(at, &fd, sizeof fd);
    at += sizeof fd;
  }
}

std::vector<UniqueFd> sockets_of(msghdr& message) {
  std::vector<UniqueFd> sockets;
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
      sockets.emplace_back(fd);
    }
  }
  return sockets;
}

// '@' in front stands for the byte 0 of an abstract name. nullopt: too long.
std::optional<std::pair<sockaddr_un, socklen_t>> unix_address(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const bool fits = path.size() > 1 && path.size() < sizeof at.sun_path;
  if (!fits || (path.front() != '/' && path.front() != '@')) return std::nullopt;
  std::memcpy(at.sun_path, path.data(), path.size());
  if (path.front() == '@') at.sun_path[0] = '\0';
  const std::size_t ending = path.front() == '/' ? 1 : 0;
  return std::pair{at,
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + ending)};
}

std::optional<long> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  long number = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

int option_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool serves(int fd, SocketUse use) {
  if (use == SocketUse::Datagram) return option_of(fd, SO_TYPE) == SOCK_DGRAM;
  return option_of(fd, SO_TYPE) == SOCK_STREAM && option_of(fd, SO_ACCEPTCONN) == 1;
}

}  // namespace

bool send_with_sockets(int unix_socket, std::string_view text, std::span<const UniqueFd> sockets) {
  if (sockets.size() > kMostPassed) return false;
  RightsBuffer control;
  iovec piece{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  put_rights(message, control, sockets);
  const ssize_t sent = ::sendmsg(unix_socket, &message, MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(text.size());
}

Result<PassedMessage, std::string> receive_with_sockets(int unix_socket, std::size_t most) {
  PassedMessage passed;
  passed.text.resize(most);
  RightsBuffer control;
  iovec piece{passed.text.data(), most};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t received = ::recvmsg(unix_socket, &message, MSG_CMSG_CLOEXEC);
  if (received < 0)
    return Failure{errno == EAGAIN ? "no answer has come; is it stopped, or its machine too busy?"
                                   : words_of(errno)};
  passed.text.resize(static_cast<std::size_t>(received));
  passed.sockets = sockets_of(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return Failure{std::string("more sockets came than fit, or than may be open")};
  return passed;
}

Result<Ok, std::string> send_datagram(const std::string& path, std::string_view text,
                                      std::span<const UniqueFd> sockets,
                                      unsigned patience_seconds) {
  const UniqueFd fd = local_datagram_socket();
  if (!fd) return Failure{words_of(errno)};
  return send_datagram(fd, path, text, sockets, patience_seconds);
}

UniqueFd local_datagram_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

Result<Ok, std::string> send_datagram(const UniqueFd& by, const std::string& path,
                                      std::string_view text, std::span<const UniqueFd> sockets,
                                      unsigned patience_seconds) {
  const auto at = unix_address(path);
  if (!at) return Failure{std::string("the name is no path and no abstract socket")};
  if (sockets.size() > kMostPassed) return Failure{std::string("too many sockets")};
  // As a time limit 0 would be none, also for another who waits at this socket.
  const int flags = MSG_NOSIGNAL | (patience_seconds == 0 ? MSG_DONTWAIT : 0);
  const timeval patience{static_cast<time_t>(patience_seconds), 0};
  if (patience_seconds != 0)
    setsockopt(by.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  RightsBuffer control;
  iovec piece{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_un*>(&at->first);
  message.msg_namelen = at->second;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  put_rights(message, control, sockets);
  if (::sendmsg(by.fd(), &message, flags) < 0) return Failure{words_of(errno)};
  return Ok{};
}

ssize_t send_at_once(int socket, std::string_view bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

Result<UniqueFd, int> connect_locally(const std::string& path, unsigned patience_seconds) {
  const auto at = unix_address(path);
  if (!at) return Failure{ENAMETOOLONG};
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return Failure{errno};
  const timeval patience{static_cast<time_t>(patience_seconds), 0};
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(fd.fd(), SOL_SOCKET, which, &patience, sizeof patience);
  const auto* name = reinterpret_cast<const sockaddr*>(&at->first);
  if (::connect(fd.fd(), name, at->second) != 0) return Failure{errno};
  return fd;
}

std::vector<UniqueFd> sockets_from_service_manager() {
  std::vector<UniqueFd> sockets;
  const auto count = number_in("LISTEN_FDS");
  if (count && number_in("LISTEN_PID") == getpid() && *count <= static_cast<long>(kMostPassed))
    for (int fd = kFirstPassed; fd < kFirstPassed + *count; ++fd) {
      fcntl(fd, F_SETFD, FD_CLOEXEC);
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
      sockets.emplace_back(fd);
    }
  for (const char* each : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}) unsetenv(each);
  return sockets;
}

bool serves_at(int fd, SocketUse use, const SocketAddress& at) {
  const SocketAddress own = SocketAddress::local_of(fd);
  return serves(fd, use) && own.family() == at.family() && own.address() == at.address();
}

bool is_in_the_way(int fd, SocketUse use, const SocketAddress& at) {
  return serves(fd, use) && overlaps(SocketAddress::local_of(fd).address(), at.address());
}

bool overlaps(const Address& one, const Address& other) {
  const auto covers = [](const std::string& wildcard, const std::string& host) {
    return wildcard == "::" || (wildcard == "0.0.0.0" && host.find(':') == std::string::npos);
  };
  return one.port == other.port &&
         (one.host == other.host || covers(one.host, other.host) || covers(other.host, one.host));
}

}  // namespace stag::net
