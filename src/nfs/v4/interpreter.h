// The procedure COMPOUND of program 100003 version 4 (RFC 8881 16.2): all operations are decoded
// before the first one runs; then they run one after the other until one fails.
#pragma once

#include "nfs/v4/compound/shared_state.h"
#include "nfs/v4/operation_observer.h"
#include "rpc/program.h"

namespace stag::nfs::nfs4 {

// `shared` and `observer` outlive it; `observer` may be null.
std::unique_ptr<rpc::Handler> compound_handler(SharedState& shared, OperationObserver* observer);

}  // namespace stag::nfs::nfs4
