#include "cli/serve/preflight.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/observe/metrics_server.h"
#include "cli/serve/control.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/listeners.h"
#include "cli/serve/wanted_sockets.h"
#include "cli/support/output.h"
#include "nfs/export/state/durable_file.h"

namespace stag::cli {
namespace {

Result<Ok, std::string> check_users(const ServeOptions& options,
                                    const std::vector<ExportLine>& lines) {
  if (const auto checked = options.control.check(); !checked) return checked;
  if (const auto checked = options.kerberos.check(lines); !checked) return checked;
  if (const auto opened = options.id_mapping.open(); !opened) return Failure{opened.error()};
  return Ok{};
}

// The predecessor may know that client, and admit it.
Result<Ok, std::string> check_clients(const std::vector<ExportLine>& lines) {
  for (const ExportLine& line : lines)
    if (const auto unknown = unknown_clients(line); !unknown.empty())
      return Failure{fmt::format("{}client {}", line.where, unknown.front())};
  return Ok{};
}

Result<Ok, std::string> check_place_of(const std::string& option, const std::string& path) {
  if (path.empty()) return Ok{};
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return Failure{fmt::format("{} {}: it is a directory", option, path)};
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (std::filesystem::is_directory(folder, error)) return Ok{};
  return Failure{fmt::format("{} {}: there is no directory {}", option, path, folder.string())};
}

Result<Ok, std::string> check_control(const ServeOptions& options, const Successor* successor) {
  const ControlSettings& control = options.control;
  if (control.path == "none") return Ok{};
  if (const auto checked = check_place_of("--control", control.path); !checked) return checked;
  // The server that listens there may be the one that is to read these settings.
  if (successor == nullptr)
    return Control::rehearse(control, Control::places({}, options.state), false);
  return Control::rehearse(control, {successor->predecessor.control_path()}, true);
}

// Three small files, and what SQLite has beside its database.
constexpr std::size_t kWrittenAtStart = 64 << 10;

// That it does not answer keeps a successor only, as with folders.
Result<Ok, std::string> check_state_directory(const ServeOptions& options, StoreWatch& stores,
                                              const Successor* successor) {
  const auto tried = stores.ask(StoreWatch::state_directory(options.state), [path = options.state] {
    return nfs::try_to_write(path, kWrittenAtStart);
  });
  if (tried && !*tried) return Failure{tried->error().message};
  if (tried) return Ok{};
  const bool no_thread = tried.error() == StoreWatch::Silence::NoThread;
  const std::string doubt = fmt::format(
      "the state directory {} {}", options.state,
      no_thread
          ? "was not tried: the system has no thread left; raise its limit (TasksMax=, ulimit -u)"
          : "does not answer; does what it is mounted from work?");
  if (successor != nullptr) return Failure{doubt};
  offer_error("stag serve: " + doubt);
  return Ok{};
}

Result<Ok, std::string> check_settings(const ServeOptions& options,
                                       const std::vector<ExportLine>& lines,
                                       const Successor* successor) {
  if (const auto checked = check_users(options, lines); !checked) return checked;
  if (successor != nullptr)
    if (const auto known = check_clients(lines); !known) return known;
  if (const auto apart = sockets_are_apart(options); !apart) return apart;
  if (const auto checked = check_place_of("--capture", options.observe.capture()); !checked)
    return checked;
  return check_control(options, successor);
}

// A folder that does not answer keeps a successor only: a reload leaves it as it is.
Result<Ok, ExportSet::Trouble> check_exports(const ServeOptions& options,
                                             const std::vector<ExportLine>& lines,
                                             StoreWatch& stores, const Successor* successor) {
  const auto doubts = ExportSet::rehearse(lines, stores, options.state);
  if (!doubts) return Failure{doubts.error()};
  if (successor != nullptr && !doubts->empty()) return Failure{ExportSet::Trouble{doubts->front()}};
  for (const std::string& doubt : *doubts) offer_error("stag serve: " + doubt);
  return Ok{};
}

// The capture comes last, because it makes a file where there is none.
Result<Ok, std::string> try_places(const ServeOptions& options, const Successor& successor) {
  if (const auto reserved = Listeners::reserve(options, successor.sockets); !reserved)
    return reserved;
  if (successor.ports != nullptr)
    if (const auto served = successor.ports->rehearse(); !served) return served;
  const ObserveOptions& observe = options.observe;
  if (const auto& taken = successor.predecessor.metrics_at(); taken && !observe.metrics().empty())
    if (const auto free = MetricsServer::rehearse(observe.metrics(), *taken); !free) return free;
  if (observe.capture().empty()) return Ok{};
  if (const auto file = rehearse_capture_file(observe.capture()); !file)
    return Failure{"--capture: " + file.error()};
  return Ok{};
}

// All that a start needs and that can be tried beside a server that runs. Null: for --check.
Result<Ok, ExportSet::Trouble> check_start(const ServeOptions& options,
                                           const std::vector<ExportLine>& lines, StoreWatch& stores,
                                           const Successor* successor) {
  if (const auto checked = check_settings(options, lines, successor); !checked)
    return Failure{ExportSet::Trouble{checked.error()}};
  if (const auto checked = check_state_directory(options, stores, successor); !checked)
    return Failure{ExportSet::Trouble{checked.error()}};
  if (const auto checked = check_exports(options, lines, stores, successor); !checked)
    return checked;
  if (successor == nullptr) return Ok{};
  if (const auto tried = try_places(options, *successor); !tried)
    return Failure{ExportSet::Trouble{tried.error()}};
  return Ok{};
}

}  // namespace

Result<Ok, ExportSet::Trouble> check_configuration(const ServeOptions& options,
                                                   const std::vector<ExportLine>& lines,
                                                   StoreWatch& stores) {
  return check_start(options, lines, stores, nullptr);
}

Result<Ok, ExportSet::Trouble> preflight(const ServeOptions& options,
                                         const std::vector<ExportLine>& lines, StoreWatch& stores,
                                         const Successor& successor) {
  auto checked = check_start(options, lines, stores, &successor);
  if (checked) return checked;
  ExportSet::Trouble trouble = checked.error();
  trouble.sentence += "; the server that runs serves on";
  return Failure{std::move(trouble)};
}

}  // namespace stag::cli
