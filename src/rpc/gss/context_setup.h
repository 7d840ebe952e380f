// The exchanges that make a client's context, and the one that ends it (RFC 2203 sections 5.2 and
// 5.4). Thread: the Channel's loop.
#pragma once

#include <memory>

#include "base/result.h"
#include "base/task.h"
#include "rpc/channel.h"
#include "rpc/gss/client_context.h"

namespace stag::rpc {

// `header` and `message` are of the Call that needs the context: its program and version, deadline
// and CancelToken. Why there is none is traced with the mechanism's own words.
Task<Result<std::shared_ptr<ClientContext>, CallError>> set_up_context(
    Channel& channel, gss::Initiator& initiator, const oncrpc::CallHeader& header,
    const CallMessage& message);

// Tells the server, and waits for its answer a short time. Refers to the Channel only: it is one of
// the calls that the Channel's close() ends.
Task<void> destroy_context(Channel& channel, std::shared_ptr<ClientContext> context,
                           oncrpc::CallHeader header, gss::Service service);

}  // namespace stag::rpc
