#include "fabric/verbs/device_traits.h"

#include <algorithm>
#include <cerrno>

#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {

std::uint32_t positive(int value, std::uint32_t least = 0) {
  return value < 0 ? least : std::max(static_cast<std::uint32_t>(value), least);
}

}  // namespace

DeviceTraits traits_of(const ibv_device& device, const ibv_device_attr& attributes,
                       std::uint32_t max_message) {
  DeviceTraits traits;
  constexpr unsigned kWindows = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  traits.iwarp = device.transport_type == IBV_TRANSPORT_IWARP;
  traits.windows = (attributes.device_cap_flags & kWindows) != 0 && attributes.max_mw > 0;
  // On iWARP a message that finds no receive ends its connection, whichever connection took the
  // last one.
  traits.shared_queue =
      traits.windows && !traits.iwarp && attributes.max_srq > 0 && attributes.max_srq_wr > 0;
  traits.max_sge = positive(attributes.max_sge, 1);
  traits.max_work = positive(attributes.max_qp_wr, 1);
  traits.max_completions = positive(attributes.max_cqe, 1);
  traits.max_shared_receives = positive(attributes.max_srq_wr);
  traits.inbound_reads = positive(attributes.max_qp_rd_atom);
  traits.outbound_reads = positive(attributes.max_qp_init_rd_atom);
  traits.max_message = std::max<std::uint32_t>(max_message, 1);
  // Linux's rxe tells programs the kernel's own value of the flag, which means something else here
  // and is told of no other reliable connection.
  constexpr std::uint32_t kRxeVendor = 0xffffff;
  if (attributes.vendor_id == kRxeVendor) traits.invalidation_flags |= IBV_WC_IP_CSUM_OK;
  // libi40iw, and libirdma before rdma-core 44.
  constexpr std::uint32_t kIntelVendor = 0x8086;
  traits.one_inline_piece = attributes.vendor_id == kIntelVendor;
  return traits;
}

Result<Ok, Reason> try_windows(const VerbsFunctions& functions, ibv_context* context,
                               DeviceTraits& traits) {
  if (!traits.windows) return Ok{};
  ibv_pd* domain = functions.alloc_pd(context);
  if (domain == nullptr) return Failure{reason_of_device_error(errno)};
  ibv_mw* window = ibv_alloc_mw(domain, IBV_MW_TYPE_2);
  if (window != nullptr)
    ibv_dealloc_mw(window);
  else
    traits.windows = traits.shared_queue = false;
  functions.dealloc_pd(domain);
  return Ok{};
}

}  // namespace stag::fabric
