#include <fmt/format.h>
#include <sys/resource.h>

#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/format.h"
#include "cli/support/json.h"
#include "cli/support/output.h"
#include "fabric/verbs/device_list.h"

namespace stag::cli {
namespace {

using fabric::DeviceGid;
using fabric::DevicePort;
using fabric::ListedDevice;

// Bytes; all bits set: unlimited.
std::uint64_t lockable_memory() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? ~std::uint64_t{0} : limit.rlim_cur;
}

std::string_view kind_of(const ListedDevice& device) {
  if (device.traits.iwarp) return "iWARP";
  const bool ethernet = !device.ports.empty() && device.ports.front().link == "Ethernet";
  return ethernet ? "RoCE" : "InfiniBand";
}

std::string_view exposure_of(const ListedDevice& device) {
  return device.traits.windows ? "memory windows of type 2" : "a registration for each range";
}
std::string_view receives_of(const ListedDevice& device) {
  return device.traits.shared_queue ? "shared by the connections of a thread"
                                    : "each connection its own";
}

class Devices final : public Command {
 public:
  About about() const override {
    return {"devices",
            "show the RDMA devices of this machine, and whether --fabric verbs uses them",
            "  stag devices --json\n"};
  }
  void declare(Arguments& arguments) override { arguments.flag("--json", json_, "an object"); }
  Exit run() override {
    const auto functions = fabric::load_verbs();
    if (!functions) return none(functions.error());
    const auto devices = fabric::list_devices(**functions);
    if (!devices) return none(devices.error());
    if (json_)
      print_json(*devices);
    else
      print(*devices);
    return Exit::Done;
  }

 private:
  Exit none(Reason reason) const {
    if (json_) put("{}\n", object(Json::array(), reason).text());
    return failed(info(reason).text);
  }

  static void print(const std::vector<ListedDevice>& devices) {
    for (const ListedDevice& device : devices) print(device);
    const std::uint64_t lockable = lockable_memory();
    put("memory that may be locked (RLIMIT_MEMLOCK): {}\n",
        lockable == ~std::uint64_t{0} ? "unlimited" : human_size(static_cast<double>(lockable)));
  }
  static void print(const ListedDevice& device) {
    if (device.unusable == Reason::None)
      put("{}  used by --fabric verbs\n", shown(device.name));
    else
      put("{}  not used: {}\n", shown(device.name), info(device.unusable).text);
    if (device.ports.empty()) return;
    put("  kind              {}{}{}\n", kind_of(device),
        device.firmware.empty() ? "" : ", firmware ", shown(device.firmware));
    for (const DevicePort& port : device.ports) print(port);
    put("  exposes memory by {}\n", exposure_of(device));
    put("  receives          {}\n", receives_of(device));
    put("  RDMA Reads        {} out, {} in\n", device.traits.outbound_reads,
        device.traits.inbound_reads);
    put("  limits            {} queue pairs of {} entries, {} registrations, {} windows\n",
        device.max_queue_pairs, device.traits.max_work, device.max_regions, device.max_windows);
  }
  static void print(const DevicePort& port) {
    put("  port {:<12} {}, {}{}\n", port.number, port.state, port.link,
        port.mtu == 0 ? "" : fmt::format(", MTU {}", port.mtu));
    for (const DeviceGid& gid : port.gids)
      put("    GID {:<9} {}  {}{}{}\n", gid.index, gid.text, gid.type,
          gid.interface.empty() ? "" : "  ", shown(gid.interface));
  }

  static Json object(Json devices, Reason reason) {
    Json json;
    json.set("devices", std::move(devices));
    if (reason != Reason::None) json.set("reason", info(reason).text);
    const std::uint64_t lockable = lockable_memory();
    if (lockable != ~std::uint64_t{0}) json.set_quantity("lockable_memory", lockable);
    return json;
  }
  static void print_json(const std::vector<ListedDevice>& devices) {
    Json array = Json::array();
    for (const ListedDevice& device : devices) array.add(object(device));
    put("{}\n", object(std::move(array), Reason::None).text());
  }
  static Json object(const ListedDevice& device) {
    Json json;
    json.set_bytes("name", device.name).set("used", device.unusable == Reason::None);
    if (device.unusable != Reason::None) json.set("reason", info(device.unusable).text);
    if (device.ports.empty()) return json;
    Json ports = Json::array();
    for (const DevicePort& port : device.ports) ports.add(object(port));
    json.set("kind", kind_of(device))
        .set("firmware", device.firmware)
        .set("memory_windows", device.traits.windows)
        .set("shared_receives", device.traits.shared_queue)
        .set_quantity("reads_out", device.traits.outbound_reads)
        .set_quantity("reads_in", device.traits.inbound_reads)
        .set_quantity("queue_entries", device.traits.max_work)
        .set_quantity("queue_pairs", device.max_queue_pairs)
        .set_quantity("registrations", device.max_regions)
        .set_quantity("windows", device.max_windows)
        .set("ports", std::move(ports));
    return json;
  }
  static Json object(const DevicePort& port) {
    Json gids = Json::array();
    for (const DeviceGid& gid : port.gids) {
      Json json;
      json.set_quantity("index", gid.index)
          .set("gid", gid.text)
          .set("type", gid.type)
          .set("interface", gid.interface);
      gids.add(std::move(json));
    }
    Json json;
    json.set_quantity("port", port.number)
        .set("state", port.state)
        .set("link", port.link)
        .set_quantity("mtu", port.mtu)
        .set("gids", std::move(gids));
    return json;
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_devices() {
  return std::make_unique<Devices>();
}

}  // namespace stag::cli
