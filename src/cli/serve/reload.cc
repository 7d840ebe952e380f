#include "cli/serve/reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/reason.h"
#include "cli/serve/notices.h"
#include "cli/support/log.h"

namespace stag::cli {
namespace {

constexpr std::string_view kReloadSource = "SIGHUP";
const std::string kLogLevelKey = "log-level";

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

Reload::Reload(const ServeOptions& options, ExportSet& exports)
    : options_(options), exports_(exports) {
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
    if (!file.is_own(setting) && !file.is_overridden(setting))
      settings[setting.key] = settings_text(setting);
  return settings;
}

void Reload::operator()() {
  auto now = settings_of(options_.config);
  if (!now) return reload_failed(now.error());
  if (const auto level = now->find(kLogLevelKey);
      level != now->end() && !is_log_level(level->second))
    return reload_failed(fmt::format("log-level '{}' is unknown; use one of {}", level->second,
                                     fmt::join(ServeOptions::kLogLevels, ", ")));
  if (options_.exports_are_in_file() && !replace_exports()) return;
  const Settings before = std::exchange(in_file_, *std::move(now));
  for (const auto& [key, value] : in_file_) {
    const auto old = before.find(key);
    if (old == before.end() || old->second != value) apply(key, value);
  }
  for (const auto& [key, value] : before)
    if (!in_file_.contains(key)) apply(key, "");
}

void Reload::apply(const std::string& key, const std::string& value) const {
  if (key != kLogLevelKey) return log_notice(notices::kSettingNeedsRestart, kReloadSource, key);
  // What is gone from the file is what it is without being asked for.
  const std::string level = value.empty() ? ServeOptions().log_level : value;
  set_log_level(level);
  log_notice(notices::kSettingChanged, kReloadSource, fmt::format("{} = {}", key, level));
  fmt::print("settings: {} = {}\n", key, level);
  std::fflush(stdout);
}

bool Reload::replace_exports() const {
  auto lines = options_.read_exports();
  if (!lines) return reload_failed(lines.error()), false;
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
