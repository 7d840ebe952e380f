// Where a peer is: a host name or numeric address, and a port; or, on this machine, the path of a
// Unix socket (a host that begins with '/', no port). Resolved only in net.
#pragma once

#include <cstdint>
#include <string>

namespace stag {

struct Address {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

// "127.0.0.1:20049", "[::1]:20049", "/run/rpcbind.sock"
inline std::string to_string(const Address& address) {
  if (address.host.starts_with('/')) return address.host;
  const bool bracket = address.host.find(':') != std::string::npos;
  return (bracket ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace stag
