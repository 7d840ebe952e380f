// IP addresses and networks as values, for the lists of peers that may connect. Numeric only; net
// resolves host names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stag {

// An address of either family. An IPv4 address inside IPv6 (::ffff:192.0.2.1) is that IPv4 address.
struct IpAddress {
  std::uint64_t high = 0;  // the first eight bytes, in host byte order
  std::uint64_t low = 0;   // the last eight

  // Reads "192.0.2.1" or "2001:db8::1"; drops the scope of "fe80::1%eth0". nullopt for any other
  // text.
  static std::optional<IpAddress> parse(std::string_view text);
  bool is_v4() const { return high == 0 && low >> 32 == 0xffff; }
  // The same for all addresses that one client may choose from: a /64 of IPv6, of which anybody has
  // all, or one address of IPv4.
  std::uint64_t client() const { return is_v4() ? low : high; }
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

class IpNetwork {
 public:
  // Reads "192.0.2.0/24", "192.0.2.0/255.255.255.0", "2001:db8::/32", or one address; bits behind
  // the prefix are ignored. nullopt for any other text.
  static std::optional<IpNetwork> parse(std::string_view text);

  // IPv4 addresses are in IPv4 networks only: "::/0" is all of IPv6.
  bool contains(const IpAddress& address) const {
    return address.is_v4() == first_.is_v4() && ((address.high ^ first_.high) & mask_.high) == 0 &&
           ((address.low ^ first_.low) & mask_.low) == 0;
  }
  // How many of the 128 bits are fixed: the more, the more specific is the network.
  unsigned prefix() const { return prefix_; }
  friend bool operator==(const IpNetwork&, const IpNetwork&) = default;

 private:
  IpNetwork(const IpAddress& address, unsigned prefix);

  IpAddress first_;
  IpAddress mask_;
  unsigned prefix_ = 0;
};

// Whether a peer at `host` (Address::host, numeric) lies in one of `networks`; an empty list allows
// every peer.
bool is_allowed(std::span<const IpNetwork> networks, std::string_view host);

// IpAddress::client() of a peer at `host`; 0 where that is no address.
std::uint64_t client_at(std::string_view host);

}  // namespace stag
