// Settings of the verbs provider: RDMA devices through rdma-core.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/loop.h"

namespace stag::fabric {

struct VerbsFunctions;

struct VerbsOptions {
  // Internal: for tests without a device. Null: the functions of the installed rdma-core.
  std::shared_ptr<const VerbsFunctions> functions{};
  // The name of the only device to be used, as `rdma link` shows it; empty: whichever serves the
  // address. Connections begin at an address of that device.
  std::string device{};
  // Where to look for its addresses; null: the network interfaces of this machine.
  std::function<std::vector<Address>()> local_addresses{};
  // Exposes memory that stays registered as long as its connection lives, and copies what calls
  // have there: no system calls for a call, but a peer keeps its access to what earlier calls have
  // left.
  bool open_regions = false;
  // How long after a device was removed rdma-core is asked to give it up, and how often a listener
  // at an address of that device looks whether the address is served again.
  Duration listen_again_after = std::chrono::seconds(1);
  // Bytes that one handle may cover. Registering pins every page in a system call on the loop.
  std::uint32_t max_registration = 1 << 20;
};

}  // namespace stag::fabric
