#include "cli/serve/reload.h"

#include <fmt/format.h>

#include <utility>

#include "base/reason.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/notices.h"
#include "cli/support/log.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

constexpr std::string_view kReloadSource = "SIGHUP";
// What changes at once, beside the exports.
constexpr std::string_view kLogLevel = "log-level";
constexpr std::string_view kSlowCall = "slow-call";
constexpr std::string_view kTraceClient = "trace-client";

std::string settings_text(const Setting& setting) {
  std::string text;
  for (const Value& value : setting.values) {
    if (!text.empty()) text += ", ";
    text += value.text;
    for (const Setting& member : value.members)
      text += fmt::format("{} = {}; ", member.key, settings_text(member));
  }
  return text;
}

Result<std::vector<Setting>, std::string> read(const ConfigFile& file) {
  return file.given() ? file.read() : std::vector<Setting>();
}

}  // namespace

Reload::Reload(const ServeOptions& options, ExportSet& exports, Observation& observation,
               std::stop_token ending)
    : options_(options), exports_(exports), observation_(observation), ending_(std::move(ending)) {
  // What cannot be read now was read a moment ago.
  if (const auto settings = read(options.config)) in_file_ = relevant(*settings);
}

Reload::Settings Reload::relevant(const std::vector<Setting>& all) const {
  Settings settings;
  for (const Setting& setting : all)
    if (!options_.config.is_own(setting) && !options_.config.is_overridden(setting))
      settings[setting.key] = setting;
  return settings;
}

Result<std::unique_ptr<ServeOptions>, std::string> Reload::try_out(
    const std::vector<Setting>& all) const {
  auto trial = std::make_unique<ServeOptions>();
  const auto declare = [&](Arguments& arguments) { trial->declare(arguments); };
  if (const auto given = options_.config.try_out(all, declare); !given)
    return Failure{given.error()};
  if (const auto checked = trial->check(); !checked) return Failure{checked.error()};
  if (const auto checked = trial->control.check(); !checked) return Failure{checked.error()};
  return trial;
}

Result<Ok, std::string> Reload::operator()() {
  Result<Ok, std::string> done = read_again();
  if (!done && !ending_.stop_requested())
    trace(Reason::ExportsReloadFailed, kReloadSource, done.error());
  return done;
}

Result<Ok, std::string> Reload::read_again() {
  const auto settings = read(options_.config);
  if (!settings) return Failure{settings.error()};
  const auto now = try_out(*settings);
  if (!now) return Failure{now.error()};
  if (options_.exports_are_in_file())
    if (auto replaced = replace_exports(); !replaced) return replaced;
  const std::vector<std::string> changed = changes(relevant(*settings));
  in_file_ = relevant(*settings);
  for (const std::string& key : changed) apply(key, **now);
  return Ok{};
}

std::vector<std::string> Reload::changes(const Settings& now) const {
  std::vector<std::string> keys;
  for (const auto& [key, setting] : now) {
    const auto old = in_file_.find(key);
    if (old == in_file_.end() || settings_text(old->second) != settings_text(setting))
      keys.push_back(key);
  }
  for (const auto& [key, setting] : in_file_)
    if (!now.contains(key)) keys.push_back(key);
  return keys;
}

void Reload::apply(const std::string& key, const ServeOptions& now) {
  const auto found = in_file_.find(key);
  std::string value = found == in_file_.end() ? "" : settings_text(found->second);
  if (key == kLogLevel) {
    value = now.log_level;
    set_log_level(value);
  } else if (key == kSlowCall || key == kTraceClient) {
    observation_.change(now.observe.events());
    if (value.empty()) value = key == kSlowCall ? ObserveOptions::kUsualSlow : "nobody";
  } else {
    return log_notice(notices::kSettingNeedsRestart, kReloadSource, key);
  }
  log_notice(notices::kSettingChanged, kReloadSource, fmt::format("{} = {}", key, value));
  offer_out(fmt::format("settings: {} = {}", key, value));
}

Result<Ok, std::string> Reload::replace_exports() const {
  auto lines = options_.read_exports();
  if (!lines) return Failure{lines.error().sentence};
  ask_for_hosts(*lines, ending_);
  if (ending_.stop_requested()) return Failure{std::string("the server ends")};
  if (std::string why = options_.kerberos.obstacle(*lines); !why.empty())
    return Failure{std::move(why)};
  const auto replaced = exports_.replace(*std::move(lines));
  if (!replaced) return Failure{replaced.error().sentence};
  trace(Reason::NfsExportsChanged, kReloadSource, *replaced);
  offer_out("exports: " + *replaced);
  return Ok{};
}

}  // namespace stag::cli
