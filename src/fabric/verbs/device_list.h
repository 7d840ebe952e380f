// The RDMA devices of this machine, as a person wants to see them: what they are, what they can do,
// and whether connections can use them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/reason.h"
#include "base/result.h"
#include "fabric/verbs/device_traits.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::fabric {

// An address of a port as its device knows it. RDMA-CM finds the device of an IP address by it.
struct DeviceGid {
  std::uint32_t index = 0;
  std::string text;       // of IPv6, of IPv4 behind ::ffff:, or of a hardware address on iWARP
  std::string type;       // "InfiniBand", "RoCE v1", "RoCE v2" or "iWARP"
  std::string interface;  // the network interface; empty where there is none
};

struct DevicePort {
  std::uint32_t number = 0;
  std::string state;      // "active", "down" and so on
  std::string link;       // "Ethernet" or "InfiniBand"
  std::uint32_t mtu = 0;  // bytes of a packet's payload
  std::vector<DeviceGid> gids;
};

struct ListedDevice {
  std::string name;
  std::string firmware;  // may be empty
  // Why connections cannot use the device; None when they can.
  Reason unusable = Reason::None;
  // Known where the device could be opened.
  DeviceTraits traits;
  std::uint32_t max_queue_pairs = 0, max_regions = 0, max_windows = 0;
  std::vector<DevicePort> ports;
};

// Opens each device for a moment, and registers a MiB there. VerbsDeviceMissing when there is none.
Result<std::vector<ListedDevice>, Reason> list_devices(const VerbsFunctions& functions);

}  // namespace stag::fabric
