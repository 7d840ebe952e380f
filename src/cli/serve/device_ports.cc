#include "cli/serve/device_ports.h"

#include <algorithm>
#include <utility>

#include "cli/serve/listeners.h"
#include "fabric/verbs/verbs_port.h"
#include "net/socket_address.h"

namespace stag::cli {

using fabric::VerbsPort;

DevicePorts::DevicePorts(const ServeOptions& options, std::shared_ptr<endpoint::Loops> loops,
                         std::shared_ptr<const fabric::VerbsFunctions> functions)
    : loops_(std::move(loops)) {
  verbs_.functions = std::move(functions);
  verbs_.device = options.device;
  const auto port = static_cast<std::uint16_t>(options.device_port());
  for (const std::string& host : options.hosts) ports_.push_back({.wanted = {host, port}});
}

DevicePorts::~DevicePorts() {
  endpoint::finish_on(loops_->at(0), [this] { ports_.clear(); });
}

Result<Ok, std::string> DevicePorts::rehearse() {
  for (Port& each : ports_) {
    const auto trouble = [&](Reason why) {
      return Failure{Listeners::cannot_listen_at_device(each.wanted, why)};
    };
    const auto resolved = net::resolve_blocking(each.wanted);
    if (!resolved) return trouble(resolved.error());
    each.numeric = resolved->front().address();
    const auto served =
        endpoint::run_on(loops_->at(0), [&] { return VerbsPort::rehearse(verbs_, each.numeric); });
    if (!served) return trouble(served.error());
    // What the system chooses is free at any time.
    each.waits = each.wanted.port != 0;
  }
  return Ok{};
}

void DevicePorts::listen_where_free() {
  for (Port& each : ports_) {
    if (!each.waits) continue;
    auto port =
        endpoint::run_on(loops_->at(0), [&] { return VerbsPort::listen(verbs_, each.numeric); });
    const bool taken = !port && (port.error() == Reason::AddressInUse ||
                                 port.error() == Reason::AddressNotAvailable);
    // Anything else its listener will meet, too, and say.
    each.waits = taken;
    if (port) each.listening = *std::move(port);
  }
}

std::shared_ptr<VerbsPort> DevicePorts::take(const Address& at) {
  const auto found =
      std::ranges::find_if(ports_, [&](const Port& each) { return each.wanted == at; });
  return found == ports_.end() ? nullptr : std::exchange(found->listening, nullptr);
}

}  // namespace stag::cli
