#include "fabric/verbs/device_list.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>

#include "fabric/verbs/verbs_reason.h"

namespace stag::fabric {
namespace {

constexpr std::size_t kMostGids = 256;
constexpr std::size_t kTrial = 1 << 20;  // bytes: the longest registration of a connection

std::string state_of(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_ACTIVE:
    case IBV_PORT_ACTIVE_DEFER:
      return "active";
    case IBV_PORT_ARMED:
      return "armed";
    case IBV_PORT_INIT:
      return "initializing";
    case IBV_PORT_DOWN:
      return "down";
    default:
      return "unknown";
  }
}

std::string link_of(std::uint8_t layer) {
  return layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

std::uint32_t mtu_of(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

std::string text_of(const ibv_gid& gid, bool iwarp) {
  const std::span bytes(gid.raw);
  if (iwarp) {
    std::array<char, 18> text{};
    std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1],
                  bytes[2], bytes[3], bytes[4], bytes[5]);
    return text.data();
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
  return text.data();
}

std::string type_of(std::uint32_t type, bool iwarp) {
  if (iwarp) return "iWARP";
  if (type == IBV_GID_TYPE_ROCE_V2) return "RoCE v2";
  return type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "InfiniBand";
}

std::string interface_of(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  return index != 0 && ::if_indextoname(index, name.data()) != nullptr ? name.data() : "";
}

// A device that is open for as long as this lives.
class OpenDevice {
 public:
  OpenDevice(const VerbsFunctions& functions, ibv_device* device)
      : functions_(functions), context_(functions.open_device(device)) {
    if (context_ == nullptr) error_ = errno;
  }
  ~OpenDevice() {
    if (context_ != nullptr) functions_.close_device(context_);
  }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  ibv_context* context() const { return context_; }
  int error() const { return error_; }

  // Whether a connection could register what it needs.
  Reason try_memory() const {
    ibv_pd* domain = functions_.alloc_pd(context_);
    if (domain == nullptr) return reason_of_device_error(errno);
    const auto memory = std::make_unique<std::byte[]>(kTrial);
    ibv_mr* region = functions_.reg_mr(domain, memory.get(), kTrial, IBV_ACCESS_LOCAL_WRITE);
    const Reason reason =
        region == nullptr ? reason_of_registration_error(errno, kTrial) : Reason::None;
    if (region != nullptr) functions_.dereg_mr(region);
    functions_.dealloc_pd(domain);
    return reason;
  }

 private:
  const VerbsFunctions& functions_;
  ibv_context* const context_;
  int error_ = 0;
};

bool is_link_local(const DeviceGid& gid) {
  return gid.text.starts_with("fe80:");
}

// RDMA-CM takes the GID that is the connection's own IP address; the one made of the hardware
// address is always there.
bool lacks_addresses(const DevicePort& port) {
  return port.link == "Ethernet" && !port.gids.empty() &&
         std::all_of(port.gids.begin(), port.gids.end(), is_link_local);
}

void add_gids(const VerbsFunctions& functions, ibv_context* context, ListedDevice& listed) {
  if (functions.query_gid_table == nullptr) return;
  std::array<ibv_gid_entry, kMostGids> entries{};
  const ssize_t count =
      functions.query_gid_table(context, entries.data(), entries.size(), 0, sizeof(ibv_gid_entry));
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    for (DevicePort& port : listed.ports)
      if (port.number == entry.port_num)
        port.gids.push_back({entry.gid_index, text_of(entry.gid, listed.traits.iwarp),
                             type_of(entry.gid_type, listed.traits.iwarp),
                             interface_of(entry.ndev_ifindex)});
  }
}

// False when the device does not answer.
bool query(const VerbsFunctions& functions, ibv_context* context, ListedDevice& listed) {
  ibv_device_attr attributes{};
  if (functions.query_device(context, &attributes) != 0) return false;
  std::uint32_t max_message = 0;
  for (std::uint8_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    ibv_port_attr port{};
    if (functions.query_port(context, number, &port) != 0) return false;
    listed.ports.push_back(
        {number, state_of(port.state), link_of(port.link_layer), mtu_of(port.active_mtu), {}});
    if (number == 1) max_message = port.max_msg_sz;
  }
  listed.traits = traits_of(*context->device, attributes, max_message);
  const std::span firmware(attributes.fw_ver);
  listed.firmware.assign(firmware.begin(), std::find(firmware.begin(), firmware.end(), '\0'));
  const auto limit = [](int value) { return static_cast<std::uint32_t>(std::max(value, 0)); };
  listed.max_queue_pairs = limit(attributes.max_qp);
  listed.max_regions = limit(attributes.max_mr);
  listed.max_windows = limit(attributes.max_mw);
  add_gids(functions, context, listed);
  return true;
}

Reason why_unusable(const OpenDevice& device, const ListedDevice& listed) {
  const ibv_transport_type transport = device.context()->device->transport_type;
  if (transport != IBV_TRANSPORT_IB && transport != IBV_TRANSPORT_IWARP)
    return Reason::VerbsTransportUnsuitable;
  const auto active = [](const DevicePort& port) { return port.state == "active"; };
  if (std::none_of(listed.ports.begin(), listed.ports.end(), active)) return Reason::VerbsPortDown;
  if (!listed.traits.iwarp &&
      std::all_of(listed.ports.begin(), listed.ports.end(), lacks_addresses))
    return Reason::VerbsAddressUnserved;
  return device.try_memory();
}

ListedDevice look_at(const VerbsFunctions& functions, ibv_device* device) {
  ListedDevice listed;
  listed.name = functions.get_device_name(device);
  const OpenDevice open(functions, device);
  if (open.context() == nullptr)
    listed.unusable = reason_of_open_error(*device, open.error());
  else if (!query(functions, open.context(), listed))
    listed.unusable = Reason::VerbsFailed;
  else if (const auto tried = try_windows(functions, open.context(), listed.traits); !tried)
    listed.unusable = tried.error();
  else
    listed.unusable = why_unusable(open, listed);
  return listed;
}

// Why nothing can be connected, whatever the device.
Reason why_no_connections(const VerbsFunctions& functions) {
  rdma_event_channel* channel = functions.create_event_channel();
  if (channel != nullptr) {
    functions.destroy_event_channel(channel);
    return Reason::None;
  }
  return reason_of_cm_error(errno);
}

}  // namespace

Result<std::vector<ListedDevice>, Reason> list_devices(const VerbsFunctions& functions) {
  int count = 0;
  ibv_device** devices = functions.get_device_list(&count);
  if (devices == nullptr) return Failure{reason_of_device_error(errno)};
  std::vector<ListedDevice> listed;
  for (int i = 0; i < count; ++i) listed.push_back(look_at(functions, devices[i]));
  functions.free_device_list(devices);
  if (listed.empty()) return Failure{Reason::VerbsDeviceMissing};
  const Reason no_connections = why_no_connections(functions);
  for (ListedDevice& device : listed)
    if (device.unusable == Reason::None) device.unusable = no_connections;
  return listed;
}

}  // namespace stag::fabric
