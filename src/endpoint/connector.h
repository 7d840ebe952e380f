// Makes a rpc::Connector with the transport and the fabric that it needs, on one loop.
#pragma once

#include <memory>

#include "endpoint/options.h"
#include "rpc/channel.h"

namespace stag::endpoint {

// Whether this build contains the fabric.
bool has_fabric(FabricKind fabric);

// The connector belongs to the thread of `loop`, which outlives it, and outlives its Channels.
// Fails with Reason::FabricUnavailable when this build does not contain the fabric.
Result<std::unique_ptr<rpc::Connector>, Reason> make_connector(net::EpollLoop& loop,
                                                               const ConnectorOptions& options);

}  // namespace stag::endpoint
