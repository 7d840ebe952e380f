// The loops that use each device of this process, of whichever fabric. librdmacm opens a device
// once for all of them, and a device reports asynchronous events once, to whichever loop asks
// first; the registry passes them on to the one that has the queue pair.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "base/reason.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

class LoopDevice;

// Any thread.
class DeviceRegistry {
 public:
  // It is there until the process ends, whatever static objects still have fabrics then.
  static DeviceRegistry& of_process();

  void add(const std::shared_ptr<LoopDevice>& device);
  void remove(const LoopDevice& device);
  // Tells every loop that uses `context`, on its own thread.
  void tell(ibv_context* context, std::uint32_t queue_pair, Reason reason);

  // The same, of few receives left in that queue.
  void tell_receives_low(ibv_context* context, const ibv_srq* queue);

 private:
  // Calls `told` with each loop's part of the device, on the loop.
  template <class F>
  void post_to_all(ibv_context* context, const F& told);
  struct Known {
    const LoopDevice* device = nullptr;
    std::weak_ptr<LoopDevice> weak;
  };
  std::mutex mutex_;
  std::list<Known> devices_;  // no memory stays behind where no device is used any more
};

}  // namespace stag::fabric
