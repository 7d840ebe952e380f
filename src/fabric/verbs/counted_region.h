// Registration of memory at a device, counted (fabric/registrations.h).
#pragma once

#include "fabric/registrations.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

// Null, and errno, as of ibv_reg_mr().
inline ibv_mr* register_memory(const VerbsFunctions& functions, ibv_pd* domain, void* memory,
                               std::size_t size, int access) {
  ibv_mr* const region = functions.reg_mr(domain, memory, size, access);
  if (region != nullptr) RegistrationCount::of_verbs().add();
  return region;
}

inline void deregister_memory(const VerbsFunctions& functions, ibv_mr* region) {
  functions.dereg_mr(region);
  RegistrationCount::of_verbs().remove();
}

}  // namespace stag::fabric
