// Makes a rpc::Connector with the transport and the fabric that it needs, on one loop.
#pragma once

#include <memory>

#include "endpoint/options.h"
#include "rpc/channel.h"

namespace stag::endpoint {

// The connector belongs to the thread of `loop`, which outlives it, and outlives its Channels.
// Where rdma-core or a device is missing, connecting says so.
std::unique_ptr<rpc::Connector> make_connector(net::EpollLoop& loop,
                                               const ConnectorOptions& options);

}  // namespace stag::endpoint
