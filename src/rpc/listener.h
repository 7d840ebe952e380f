// Listener: a place that peers connect to, to have a Service answer their Calls. The counterpart of
// Connector, for programs that are called back and choose no transport themselves.
//
// Thread: that of one loop, which the connections belong to as well.
#pragma once

#include "base/address.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/task.h"
#include "rpc/service.h"

namespace stag::rpc {

class Listener {
 public:
  virtual ~Listener() = default;
  // Listens, and yields where: with the real port. `service` outlives the Listener. Called once.
  virtual Result<Address, Reason> listen(Service& service) = 0;
  // Ends the connections, and waits for the Calls in progress. Awaited before the end.
  virtual Task<void> close() = 0;
};

}  // namespace stag::rpc
