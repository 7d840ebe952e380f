#include "fabric/verbs/device_registry.h"

#include "fabric/verbs/loop_device.h"

namespace stag::fabric {

DeviceRegistry& DeviceRegistry::of_process() {
  static DeviceRegistry& registry = *new DeviceRegistry;
  return registry;
}

void DeviceRegistry::add(const std::shared_ptr<LoopDevice>& device) {
  const std::lock_guard lock(mutex_);
  devices_.push_back({device.get(), device});
}

void DeviceRegistry::remove(const LoopDevice& device) {
  const std::lock_guard lock(mutex_);
  std::erase_if(devices_, [&device](const Known& known) { return known.device == &device; });
}

template <class F>
void DeviceRegistry::post_to_all(ibv_context* context, const F& told) {
  const std::lock_guard lock(mutex_);
  // A device that is listed has its loop: it removes itself before that ends.
  for (const Known& known : devices_) {
    if (known.device->context() != context) continue;
    known.device->loop().post([weak = known.weak, told] {
      if (const auto device = weak.lock()) told(*device);
    });
  }
}

void DeviceRegistry::tell(ibv_context* context, std::uint32_t queue_pair, Reason reason) {
  post_to_all(context, [=](LoopDevice& device) { device.on_async(queue_pair, reason); });
}

void DeviceRegistry::tell_receives_low(ibv_context* context, const ibv_srq* queue) {
  post_to_all(context, [=](LoopDevice& device) { device.on_receives_low(queue); });
}

}  // namespace stag::fabric
