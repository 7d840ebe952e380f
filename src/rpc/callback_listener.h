// CallbackListener: a place that servers connect to in order to call a client back; a Service
// answers these Calls. The counterpart of Connector, for code that chooses no transport itself. A
// program that serves uses endpoint::Listener.
//
// Thread: that of one loop, which the connections belong to as well.
#pragma once

#include "base/address.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/task.h"
#include "rpc/service.h"

namespace stag::rpc {

class CallbackListener {
 public:
  virtual ~CallbackListener() = default;
  // Listens, and yields the address with the port that is in use. `service` outlives the
  // CallbackListener. Called once.
  virtual Result<Address, Reason> listen(Service& service) = 0;
  // Ends the connections, and waits for the Calls in progress. Awaited before the destruction.
  virtual Task<void> close() = 0;
};

}  // namespace stag::rpc
