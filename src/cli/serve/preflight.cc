#include "cli/serve/preflight.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/observe/metrics_server.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/listeners.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

Result<Ok, std::string> check_users(const ServeOptions& options,
                                    const std::vector<ExportLine>& lines) {
  if (const auto checked = options.control.check(); !checked) return checked;
  if (const auto checked = options.kerberos.check(lines); !checked) return checked;
  if (const auto opened = options.id_mapping.open(); !opened) return Failure{opened.error()};
  return Ok{};
}

// The predecessor may know who that is, and admit him.
Result<Ok, std::string> check_clients(const std::vector<ExportLine>& lines) {
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
  if (const auto& taken = predecessor.metrics_at(); taken && !observe.metrics().empty())
    if (const auto free = MetricsServer::rehearse(observe.metrics(), *taken); !free) return free;
  if (observe.capture().empty()) return Ok{};
  if (const auto file = rehearse_capture_file(observe.capture()); !file)
    return Failure{"--capture: " + file.error()};
  return Ok{};
}

ExportSet::Trouble nothing_has_changed(ExportSet::Trouble trouble) {
  trouble.sentence += "; the server that runs serves on";
  return trouble;
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

// What a start makes files in.
Result<Ok, std::string> check_places_of_files(const ServeOptions& options) {
  if (const auto done = check_place_of("--capture", options.observe.capture()); !done) return done;
  const std::string& control = options.control.path;
  return control == "none" ? Ok{} : check_place_of("--control", control);
}

}  // namespace

Result<Ok, ExportSet::Trouble> check_configuration(const ServeOptions& options,
                                                   const std::vector<ExportLine>& lines,
                                                   StoreWatch& stores) {
  if (const auto checked = check_users(options, lines); !checked)
    return Failure{ExportSet::Trouble{checked.error()}};
  if (const auto checked = check_places_of_files(options); !checked)
    return Failure{ExportSet::Trouble{checked.error()}};
  const auto doubts = ExportSet::rehearse(lines, stores, options.state);
  if (!doubts) return Failure{doubts.error()};
  for (const std::string& doubt : *doubts) offer_error("stag serve: " + doubt);
  return Ok{};
}

Result<Ok, ExportSet::Trouble> preflight(const ServeOptions& options,
                                         const std::vector<ExportLine>& lines, StoreWatch& stores,
                                         ServedSockets& sockets, const TakeOver& predecessor) {
  if (const auto checked = check_users(options, lines); !checked)
    return Failure{nothing_has_changed({checked.error()})};
  if (const auto known = check_clients(lines); !known)
    return Failure{nothing_has_changed({known.error()})};
  const auto doubts = ExportSet::rehearse(lines, stores, options.state);
  if (!doubts) return Failure{nothing_has_changed(doubts.error())};
  if (!doubts->empty()) return Failure{nothing_has_changed({doubts->front()})};
  if (const auto checked = check_places(options, sockets, predecessor); !checked)
    return Failure{nothing_has_changed({checked.error()})};
  return Ok{};
}

}  // namespace stag::cli
