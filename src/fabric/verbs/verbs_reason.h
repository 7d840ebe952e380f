// What rdma-core reports, in the project's words.
#pragma once

#include "base/bytes.h"
#include "base/reason.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

// Why a work request failed.
Reason reason_of_completion(ibv_wc_status status);
// Why a receive failed.
Reason reason_of_receive(ibv_wc_status status);
// Why this event ends the setting up of a connection. `device` is null before one was found. `said`
// by the peer: a rejection without a word, or with zeros alone, comes of no listener, also of one
// that goes before it has answered.
Reason reason_of_setup(const VerbsFunctions& functions, ibv_context* device,
                       rdma_cm_event_type type, int status, Bytes said);
// Of the event that says that a queue pair which has failed has no more shared receives; of no
// other asynchronous event.
inline constexpr Reason kLastReceive = Reason::ConnectionLost;
// Why a connection's queue pair ends with this asynchronous event; None when it means no harm.
Reason reason_of_async(ibv_event_type type);
// Why opening devices, or making something at one, ended with `error`.
Reason reason_of_device_error(int error);
// Why RDMA-CM is not to be had.
Reason reason_of_cm_error(int error);
// Why a device cannot be opened.
Reason reason_of_open_error(const ibv_device& device, int error);
// Why connecting or accepting failed at once.
Reason reason_of_connect_error(int error);
// Why a listener cannot be bound.
Reason reason_of_bind_error(int error);
// Why `bytes` cannot be registered; traces the limit that has to be raised when it is that of
// locked memory.
Reason reason_of_registration_error(int error, std::size_t bytes);

}  // namespace stag::fabric
