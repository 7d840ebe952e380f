// By which addresses of this machine RDMA-CM reaches the device that was asked for by name.
#pragma once

#include <vector>

#include "fabric/verbs/verbs_loop.h"
#include "net/socket_address.h"

namespace stag::fabric {

// Addresses that connections to `to` may come from, of the device that the options of `loop` name:
// RDMA-CM is asked for the device of each. Addresses of the loopback are for peers there alone.
std::vector<net::SocketAddress> device_addresses(VerbsLoop& loop, const net::SocketAddress& to);

}  // namespace stag::fabric
