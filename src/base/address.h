// Address: where a peer is reached. A value; nothing is resolved here (net does that).
#pragma once

#include <cstdint>
#include <string>

namespace stag {

struct Address {
  // A host name, a numeric IPv4 or IPv6 address without brackets, or the path of a Unix socket of
  // this machine (begins with '/').
  std::string host;
  std::uint16_t port = 0;  // in host byte order; unused with a Unix socket

  friend bool operator==(const Address&, const Address&) = default;
};

// For messages and logs: "127.0.0.1:20049", "[::1]:20049", "/run/rpcbind.sock".
inline std::string to_string(const Address& address) {
  if (address.host.starts_with('/')) return address.host;
  const bool bracket = address.host.find(':') != std::string::npos;
  return (bracket ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace stag
