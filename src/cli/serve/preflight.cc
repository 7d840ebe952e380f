#include "cli/serve/preflight.h"

#include <fmt/format.h>

#include "cli/observe/metrics_server.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/listeners.h"

namespace stag::cli {
namespace {

Result<Ok, std::string> check_users(const ServeOptions& options,
                                    const std::vector<ExportLine>& lines) {
  if (const auto checked = options.control.check(); !checked) return checked;
  if (const auto checked = options.kerberos.check(lines); !checked) return checked;
  if (const auto opened = options.id_mapping.open(); !opened) return Failure{opened.error()};
  // The predecessor may know who that is, and admit him.
  for (const ExportLine& line : lines)
    if (const auto unknown = unknown_clients(line); !unknown.empty())
      return Failure{fmt::format("{}client {}", line.where, unknown.front())};
  return Ok{};
}

// The capture comes last, because it makes a file where there is none.
Result<Ok, std::string> check_places(const ServeOptions& options, ServedSockets& sockets,
                                     const TakeOver& predecessor) {
  if (const auto reserved = Listeners::reserve(options, sockets); !reserved) return reserved;
  const ObserveOptions& observe = options.observe;
  if (const auto port = predecessor.metrics_port(); port && !observe.metrics().empty())
    if (const auto free = MetricsServer::rehearse(observe.metrics(), *port); !free) return free;
  if (observe.capture().empty()) return Ok{};
  if (const auto file = rehearse_capture_file(observe.capture()); !file)
    return Failure{"--capture: " + file.error()};
  return Ok{};
}

ExportSet::Trouble nothing_has_changed(ExportSet::Trouble trouble) {
  trouble.sentence += "; the server that runs serves on";
  return trouble;
}

}  // namespace

Result<Ok, ExportSet::Trouble> preflight(const ServeOptions& options,
                                         const std::vector<ExportLine>& lines, StoreWatch& stores,
                                         ServedSockets& sockets, const TakeOver& predecessor) {
  if (const auto checked = check_users(options, lines); !checked)
    return Failure{nothing_has_changed({checked.error()})};
  if (const auto served = ExportSet::rehearse(lines, stores, options.state); !served)
    return Failure{nothing_has_changed(served.error())};
  if (const auto checked = check_places(options, sockets, predecessor); !checked)
    return Failure{nothing_has_changed({checked.error()})};
  return Ok{};
}

}  // namespace stag::cli
