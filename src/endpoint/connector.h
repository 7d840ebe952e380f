// Connectors with all they need: the transport, and the fabric below it.
#pragma once

#include <memory>

#include "endpoint/options.h"
#include "rpc/channel.h"

namespace stag::endpoint {

// Reason::FabricUnavailable when this build has no such fabric. The connector outlives its
// Channels.
Result<std::unique_ptr<rpc::Connector>, Reason> make_connector(const ConnectorOptions& options);

}  // namespace stag::endpoint
