// Where `stag conform` listens for what servers ask of clients of NFS version 4.0.
#pragma once

#include "conform/nfs4/callbacks.h"
#include "net/loop.h"

namespace stag::cli {

// At `at`, a numeric address; with port 0 at one that is free. `loop` outlives it.
std::unique_ptr<conform::nfs4::CallbackPlace> make_callback_place(net::EpollLoop& loop, Address at);

}  // namespace stag::cli
