// Settings of the verbs provider; one set for all connections of a VerbsFabric.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

struct VerbsOptions {
  // Null: those of the installed rdma-core.
  std::shared_ptr<const VerbsFunctions> functions;
  // Bytes that one handle may cover. Registering pins every page in a system call on the loop.
  std::uint32_t max_registration = 1 << 20;
};

}  // namespace stag::fabric
