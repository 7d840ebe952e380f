// What a device can do, as far as connections depend on it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

struct DeviceTraits {
  bool iwarp = false;
  bool windows = false;       // of type 2, which can be invalidated
  bool shared_queue = false;  // receives may be shared
  // Of several inline pieces only the first one leaves.
  bool one_inline_piece = false;
  std::uint32_t max_sge = 1;
  std::uint32_t max_work = 1;  // of a queue
  std::uint32_t max_completions = 1;
  std::uint32_t max_shared_receives = 0;
  std::uint32_t inbound_reads = 0, outbound_reads = 0;
  std::uint32_t max_message = 1;  // bytes
  // Flags of a completion, of which each says that the peer has invalidated a handle.
  unsigned invalidation_flags = IBV_WC_WITH_INV;
};

// `max_message` is that of the device's port.
DeviceTraits traits_of(const ibv_device& device, const ibv_device_attr& attributes,
                       std::uint32_t max_message);

// Tries one of the windows that the flags tell of, and takes them from `traits`, with what stands
// on them, where there is none. The flags are those of the kernel's driver: its library may lack
// windows nevertheless, and Send With Invalidate with them (Broadcom's in rdma-core 44).
Result<Ok, Reason> try_windows(const VerbsFunctions& functions, ibv_context* context,
                               DeviceTraits& traits);

}  // namespace stag::fabric
