// Universal addresses: how rpcbind writes where a service is (RFC 5665 5.2.3.3 and 5.2.3.4). The
// host, then the high and the low byte of the port, all joined by dots: "192.0.2.1.8.1",
// "2001:db8::1.8.1" (port 2049).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"

namespace stag::rpcbind {

// The host is numeric (an IPv6 scope is left out: it means nothing elsewhere) or empty, which is
// IPv6's wildcard.
std::string to_universal(const Address& address);

// Nothing when it is none: another form, a byte above 255, a host that is no IPv4 or IPv6 address.
std::optional<Address> from_universal(std::string_view text);

bool is_ipv6(std::string_view host);

}  // namespace stag::rpcbind
