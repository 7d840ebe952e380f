#include "net/interfaces.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <memory>

#include "net/socket_address.h"

namespace stag::net {

std::vector<Address> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
  std::vector<Address> found;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const sockaddr* address = each->ifa_addr;
    if (address == nullptr) continue;
    if (address->sa_family == AF_INET)
      found.push_back(SocketAddress(address, sizeof(sockaddr_in)).address());
    if (address->sa_family == AF_INET6)
      found.push_back(SocketAddress(address, sizeof(sockaddr_in6)).address());
  }
  return found;
}

}  // namespace stag::net
