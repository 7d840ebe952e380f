// The active side of a connection: address, route, queue pair, request, answer.
#pragma once

#include <memory>

#include "base/cancel.h"
#include "base/task.h"
#include "fabric/verbs/verbs_connection.h"

namespace stag::fabric {

// Everything on `loop`. The addresses of a host are tried in their order, until one answers or
// turns the request down.
Task<Result<std::unique_ptr<VerbsConnection>, Reason>> verbs_connect(
    std::shared_ptr<VerbsShared> shared, net::EpollLoop& loop, Address address,
    ConnectOptions options, CancelToken cancel);

}  // namespace stag::fabric
