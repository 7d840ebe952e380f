// IP addresses as values, and networks of them: who may come in. Numeric only; names are resolved
// in net.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stag {

// An address of either family. An IPv4 address inside IPv6 (::ffff:192.0.2.1) is that IPv4 address.
struct IpAddress {
  std::uint64_t high = 0;  // the first eight bytes
  std::uint64_t low = 0;

  // "192.0.2.1", "2001:db8::1"; the scope of "fe80::1%eth0" is left out. Nothing for anything else.
  static std::optional<IpAddress> parse(std::string_view text);
  bool is_v4() const { return high == 0 && low >> 32 == 0xffff; }
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

class IpNetwork {
 public:
  // "192.0.2.0/24", "192.0.2.0/255.255.255.0", "2001:db8::/32", or one address. Bits behind the
  // prefix do not matter.
  static std::optional<IpNetwork> parse(std::string_view text);

  // IPv4 addresses are in IPv4 networks only: "::/0" is all of IPv6.
  bool contains(const IpAddress& address) const {
    return address.is_v4() == first_.is_v4() && ((address.high ^ first_.high) & mask_.high) == 0 &&
           ((address.low ^ first_.low) & mask_.low) == 0;
  }
  // Bits that are fixed, of 128; the more, the more specific.
  unsigned prefix() const { return prefix_; }
  friend bool operator==(const IpNetwork&, const IpNetwork&) = default;

 private:
  IpNetwork(const IpAddress& address, unsigned prefix);

  IpAddress first_;
  IpAddress mask_;
  unsigned prefix_ = 0;
};

// Whether a peer at `host` (Address::host) may connect where only `networks` may; none: all may.
bool is_allowed(std::span<const IpNetwork> networks, std::string_view host);

}  // namespace stag
