// Makes a rpc::Listener on TCP, for callbacks: few connections, small messages, one loop.
#pragma once

#include <memory>

#include "base/address.h"
#include "net/loop.h"
#include "rpc/listener.h"

namespace stag::endpoint {

// Listens at `at`, a numeric address; with port 0 at one that is free. The Listener belongs to the
// thread of `loop`, which outlives it.
std::unique_ptr<rpc::Listener> make_callback_listener(net::EpollLoop& loop, Address at);

}  // namespace stag::endpoint
