// What rdma-core reports, in the project's words.
#pragma once

#include "base/reason.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

// Of a work request that failed.
Reason reason_of_completion(ibv_wc_status status);
// Of a receive that failed.
Reason reason_of_receive(ibv_wc_status status);
// Of an event that ends the setting up of a connection. `device` is null before one was found.
Reason reason_of_setup(const VerbsFunctions& functions, ibv_context* device,
                       rdma_cm_event_type type, int status);
// Of a connection's queue pair, for an asynchronous event; None when it means no harm.
Reason reason_of_async(ibv_event_type type);
// Of opening devices, or of making something at one, that ended with `error`.
Reason reason_of_device_error(int error);
// Of asking for RDMA-CM.
Reason reason_of_cm_error(int error);
// Of opening a device.
Reason reason_of_open_error(const ibv_device& device, int error);
// Of connecting or accepting, when that fails at once.
Reason reason_of_connect_error(int error);
// Of binding a listener.
Reason reason_of_bind_error(int error);
// Of registering `bytes`; traces the limit that has to be raised when it is that of locked memory.
Reason reason_of_registration_error(int error, std::size_t bytes);

}  // namespace stag::fabric
