// Connectors with all they need: the transport, and the fabric below it, on a loop.
#pragma once

#include <memory>

#include "endpoint/options.h"
#include "rpc/channel.h"

namespace stag::endpoint {

// Whether this build has it.
bool has_fabric(FabricKind fabric);

// Reason::FabricUnavailable when this build has no such fabric. The connector outlives its
// Channels.
Result<std::unique_ptr<rpc::Connector>, Reason> make_connector(net::EpollLoop& loop,
                                                               const ConnectorOptions& options);

}  // namespace stag::endpoint
