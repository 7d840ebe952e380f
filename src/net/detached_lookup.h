// A question that may block for minutes and cannot be taken back, such as one to the name service.
#pragma once

#include <vector>

#include "base/cancel.h"
#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/task.h"
#include "base/unique_function.h"
#include "net/socket_address.h"

namespace stag::net {

class EpollLoop;

using Lookup = UniqueFunction<Result<std::vector<SocketAddress>, Reason>()>;

// The result of `lookup`, which runs on a thread of its own. Ends with Cancelled or ConnectTimedOut
// when `token` is cancelled or `limit` has passed. Then nobody waits for the thread, neither the
// loop nor the end of the process: what `lookup` uses is its own.
Task<Result<std::vector<SocketAddress>, Reason>> detached_lookup(EpollLoop& loop, Lookup lookup,
                                                                 Duration limit, CancelToken token);

}  // namespace stag::net
