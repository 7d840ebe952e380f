#include "net/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "net/detached_lookup.h"
#include "net/loop.h"

namespace stag::net {
namespace {

using Addresses = Result<std::vector<SocketAddress>, Reason>;

Reason reason_of_lookup(int error) {
  switch (error) {
    case EAI_AGAIN:
    case EAI_FAIL:
      return Reason::NameServiceFailed;
    case EAI_MEMORY:
      return Reason::OutOfMemory;
    default:
      return Reason::HostNotFound;
  }
}

Addresses path_address(const std::string& path) {
  sockaddr_un socket{};
  if (path.size() >= sizeof socket.sun_path) return Failure{Reason::HostNotFound};
  socket.sun_family = AF_UNIX;
  std::memcpy(socket.sun_path, path.data(), path.size());
  return std::vector<SocketAddress>{{reinterpret_cast<sockaddr*>(&socket), sizeof socket}};
}

Addresses look_up(const Address& address, int flags) {
  if (address.host.starts_with('/')) return path_address(address.host);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  const char* host = address.host.empty() ? "::" : address.host.c_str();
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &first);
  if (error != 0) return Failure{reason_of_lookup(error)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(first, &freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next)
    if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6)
      found.emplace_back(entry->ai_addr, entry->ai_addrlen);
  if (found.empty()) return Failure{Reason::HostNotFound};
  return found;
}

// Empty for a socket without a name, as a client's is.
std::string path_of(const sockaddr_storage& storage, socklen_t size) {
  const auto* socket = reinterpret_cast<const sockaddr_un*>(&storage);
  const std::size_t length = size - std::min<std::size_t>(size, offsetof(sockaddr_un, sun_path));
  return std::string(socket->sun_path, strnlen(socket->sun_path, length));
}

std::string text_of(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof text);
  return text;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* from, socklen_t length)
    : size_(std::min<socklen_t>(length, sizeof storage_)) {
  std::memcpy(&storage_, from, size_);
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

Address SocketAddress::address() const {
  if (family() == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage_);
    return {text_of(AF_INET, &v4->sin_addr), port()};
  }
  if (family() == AF_UNIX) return {path_of(storage_, size_), 0};
  if (family() != AF_INET6) return {};
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage_);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
    return {text_of(AF_INET, &v6->sin6_addr.s6_addr[12]), port()};
  std::string host = text_of(AF_INET6, &v6->sin6_addr);
  char name[IF_NAMESIZE];
  if (v6->sin6_scope_id != 0 && if_indextoname(v6->sin6_scope_id, name) != nullptr)
    host += "%" + std::string(name);
  return {host, port()};
}

SocketAddress SocketAddress::local_of(int fd) {
  SocketAddress result;
  socklen_t size = sizeof result.storage_;
  if (getsockname(fd, result.data(), &size) == 0) result.size_ = size;
  return result;
}

SocketAddress SocketAddress::peer_of(int fd) {
  SocketAddress result;
  socklen_t size = sizeof result.storage_;
  if (getpeername(fd, result.data(), &size) == 0) result.size_ = size;
  return result;
}

std::optional<SocketAddress> numeric_address(const Address& address) {
  const Addresses found = look_up(address, AI_NUMERICHOST);
  if (!found) return std::nullopt;
  return found->front();
}

void leave_from(int fd, const std::string& from, const SocketAddress& to) {
  if (from.empty()) return;
  const auto address = numeric_address({from, 0});
  if (!address || address->family() != to.family()) return;
  // The port is chosen with the peer known: else each takes one of the machine's.
  const int later = 1;
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
  static_cast<void>(::bind(fd, address->data(), address->size()));
}

Addresses resolve_blocking(const Address& address) {
  return look_up(address, 0);
}

Task<Addresses> resolve(EpollLoop& loop, Address address, Duration limit, CancelToken token) {
  if (token.cancelled()) co_return Failure{Reason::Cancelled};
  if (const auto numeric = numeric_address(address)) co_return std::vector<SocketAddress>{*numeric};
  Lookup lookup = [address = std::move(address)] { return resolve_blocking(address); };
  co_return co_await detached_lookup(loop, std::move(lookup), limit, token);
}

}  // namespace stag::net
