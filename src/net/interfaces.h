// The addresses of this machine's network interfaces.
#pragma once

#include <vector>

#include "base/address.h"

namespace stag::net {

// Those of IPv4 and IPv6, with port 0, as the system lists them; none where it lists none.
std::vector<Address> interface_addresses();

}  // namespace stag::net
