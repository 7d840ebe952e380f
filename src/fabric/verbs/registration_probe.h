// What it costs a device to open memory to a peer and to close it again, for who measures that.
#pragma once

#include <memory>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

// A protection domain of the device that serves an address of this machine.
class RegistrationProbe {
 public:
  static Result<RegistrationProbe, Reason> open(std::shared_ptr<const VerbsFunctions> functions,
                                                const Address& address);

  // Registers `memory`, to be written by a peer, and deregisters it. False: the device refused.
  bool once(MutableBytes memory) const;

 private:
  struct Device;

  explicit RegistrationProbe(std::shared_ptr<const Device> device) : device_(std::move(device)) {}

  std::shared_ptr<const Device> device_;
};

}  // namespace stag::fabric
