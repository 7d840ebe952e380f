// Makes a rpc::CallbackListener on TCP: few connections, small messages, one loop.
#pragma once

#include <memory>

#include "base/address.h"
#include "net/loop.h"
#include "rpc/callback_listener.h"

namespace stag::endpoint {

// Listens at `at`, a numeric address; with port 0 at a port that is free. The CallbackListener
// belongs to the thread of `loop`, which outlives it.
std::unique_ptr<rpc::CallbackListener> make_callback_listener(net::EpollLoop& loop, Address at);

}  // namespace stag::endpoint
