#include "fabric/verbs/registration_probe.h"

#include <cerrno>
#include <utility>

#include "fabric/verbs/verbs_reason.h"
#include "net/socket_address.h"

namespace stag::fabric {

struct RegistrationProbe::Device {
  explicit Device(std::shared_ptr<const VerbsFunctions> its) : functions(std::move(its)) {}
  ~Device() {
    if (pd != nullptr) functions->dealloc_pd(pd);
    if (id != nullptr) functions->destroy_id(id);
    if (channel != nullptr) functions->destroy_event_channel(channel);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::shared_ptr<const VerbsFunctions> functions;
  rdma_event_channel* channel = nullptr;
  rdma_cm_id* id = nullptr;
  ibv_pd* pd = nullptr;
};

Result<RegistrationProbe, Reason> RegistrationProbe::open(
    std::shared_ptr<const VerbsFunctions> functions, const Address& address) {
  auto numeric = net::numeric_address(address);
  if (!numeric) return Failure{Reason::HostNotFound};
  const auto device = std::make_shared<Device>(std::move(functions));
  const VerbsFunctions& call = *device->functions;
  device->channel = call.create_event_channel();
  if (device->channel == nullptr) return Failure{reason_of_cm_error(errno)};
  if (call.create_id(device->channel, &device->id, nullptr, RDMA_PS_TCP) != 0)
    return Failure{reason_of_device_error(errno)};
  if (call.bind_addr(device->id, numeric->data()) != 0) return Failure{reason_of_bind_error(errno)};
  if (device->id->verbs == nullptr) return Failure{Reason::VerbsAddressUnserved};
  device->pd = call.alloc_pd(device->id->verbs);
  if (device->pd == nullptr) return Failure{reason_of_device_error(errno)};
  return RegistrationProbe(device);
}

bool RegistrationProbe::once(MutableBytes memory) const {
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const VerbsFunctions& call = *device_->functions;
  ibv_mr* region = call.reg_mr(device_->pd, memory.data(), memory.size(), kAccess);
  return region != nullptr && call.dereg_mr(region) == 0;
}

}  // namespace stag::fabric
