#include "cli/serve/reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/reason.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/notices.h"
#include "cli/support/log.h"

namespace stag::cli {
namespace {

constexpr std::string_view kReloadSource = "SIGHUP";
// What changes at once, beside the exports.
const std::string kLogLevel = "log-level";
constexpr std::string_view kSlowCall = "slow-call";
constexpr std::string_view kTraceClient = "trace-client";

std::vector<std::string> texts_of(const Setting& setting) {
  std::vector<std::string> texts;
  for (const Value& value : setting.values) texts.push_back(value.text);
  return texts;
}

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

bool is_log_level(std::string_view text) {
  return std::ranges::count(ServeOptions::kLogLevels, text) != 0;
}

void reload_failed(std::string_view why) {
  trace(Reason::ExportsReloadFailed, kReloadSource, why);
}

}  // namespace

Reload::Reload(const ServeOptions& options, ExportSet& exports, Observation& observation,
               std::stop_token ending)
    : options_(options),
      exports_(exports),
      observation_(observation),
      ending_(std::move(ending)),
      observe_(options.observe) {
  // What cannot be read now was read a moment ago.
  if (auto settings = settings_of(options.config)) in_file_ = *std::move(settings);
}

Result<Reload::Settings, std::string> Reload::settings_of(const ConfigFile& file) {
  Settings settings;
  if (!file.given()) return settings;
  const auto read = file.read();
  if (!read) return Failure{read.error()};
  for (const Setting& setting : *read)
    // What the command line says holds, and exports say themselves what has changed.
    if (!file.is_own(setting) && !file.is_overridden(setting)) settings[setting.key] = setting;
  return settings;
}

void Reload::operator()() {
  auto now = settings_of(options_.config);
  if (!now) return reload_failed(now.error());
  if (const auto level = now->find(kLogLevel);
      level != now->end() && !is_log_level(settings_text(level->second)))
    return reload_failed(fmt::format("log-level '{}' is unknown; use one of {}",
                                     settings_text(level->second),
                                     fmt::join(ServeOptions::kLogLevels, ", ")));
  auto observe = observe_options(*now);
  if (!observe) return reload_failed(observe.error());
  if (options_.exports_are_in_file() && !replace_exports()) return;
  const std::vector<std::string> changed = changes(*now);
  in_file_ = *std::move(now);
  observe_ = *std::move(observe);
  for (const std::string& key : changed) apply(key);
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

Result<ObserveOptions, std::string> Reload::observe_options(const Settings& now) const {
  ObserveOptions observe = observe_;
  for (const std::string& key : changes(now)) {
    const auto found = now.find(key);
    const std::vector<std::string> values =
        found == now.end() ? std::vector<std::string>() : texts_of(found->second);
    if (key == kSlowCall) observe.set_slow(values);
    if (key == kTraceClient) observe.set_traced(values);
  }
  if (const auto checked = observe.check(); !checked) return Failure{checked.error()};
  return observe;
}

void Reload::apply(const std::string& key) {
  const auto found = in_file_.find(key);
  std::string value = found == in_file_.end() ? "" : settings_text(found->second);
  if (key == kLogLevel) {
    if (value.empty()) value = ServeOptions().log_level;
    set_log_level(value);
  } else if (key == kSlowCall || key == kTraceClient) {
    observation_.change(observe_.events());
    if (value.empty()) value = key == kSlowCall ? ObserveOptions::kUsualSlow : "nobody";
  } else {
    return log_notice(notices::kSettingNeedsRestart, kReloadSource, key);
  }
  log_notice(notices::kSettingChanged, kReloadSource, fmt::format("{} = {}", key, value));
  fmt::print("settings: {} = {}\n", key, value);
  std::fflush(stdout);
}

bool Reload::replace_exports() const {
  auto lines = options_.read_exports();
  if (!lines) return reload_failed(lines.error()), false;
  ask_for_hosts(*lines, ending_);
  if (ending_.stop_requested()) return false;
  if (const std::string why = options_.kerberos.obstacle(*lines); !why.empty())
    return reload_failed(why), false;
  const auto replaced = exports_.replace(*std::move(lines));
  if (!replaced) return reload_failed(replaced.error().sentence), false;
  trace(Reason::NfsExportsChanged, kReloadSource, *replaced);
  fmt::print("exports: {}\n", *replaced);
  std::fflush(stdout);
  return true;
}

}  // namespace stag::cli
