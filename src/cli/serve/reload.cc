#include "cli/serve/reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/reason.h"
#include "cli/serve/late_hosts.h"
#include "cli/support/log.h"
#include "cli/support/output.h"

namespace stag::cli {

using namespace std::string_view_literals;

namespace {

// Longer than a resolver tries the first two of its servers.
constexpr Duration kNamePatience = std::chrono::seconds(15);

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

// How the log names the value of a setting that is not set.
std::string usual_text(std::string_view key, const std::string& value) {
  if (key == "slow-call") return ObserveOptions::kUsualSlow;
  if (key == "trace-client") return "nobody";
  if (key == "allow") return "all";
  if (key == "copy-from") return "none";
  if (key == "callback-network") return "nowhere";
  // Of an option without a preset of its own, which the help has in brackets.
  if (value.empty()) return "as preset";
  return value;
}

// The server does at once as these settings say (the function Running::take_on).
bool is_taken_on(std::string_view key) {
  constexpr std::array kKeys{"allow"sv,
                             "callback-network"sv,
                             "connections-per-client"sv,
                             "drain"sv,
                             "max-chunk-bytes"sv,
                             "max-connections"sv,
                             "nfs4-clients"sv,
                             "nfs4-clients-per-address"sv,
                             "nfs4-copies"sv,
                             "nfs4-copies-per-client"sv,
                             "nfs4-courtesy"sv,
                             "nfs4-delegations"sv,
                             "nfs4-sessions"sv,
                             "nfs4-states"sv,
                             "nfs4-states-per-address"sv,
                             "nfs4-states-per-client"sv,
                             "nfs4-unconfirmed"sv,
                             "stall-limit"sv};
  return std::ranges::count(kKeys, key) != 0;
}

Result<std::vector<Setting>, std::string> read(const ConfigFile& file) {
  return file.given() ? file.read() : std::vector<Setting>();
}

}  // namespace

Reload::Reload(const ServeOptions& options, Running server, std::stop_token ending)
    : options_(options),
      server_(std::move(server)),
      ending_(std::move(ending)),
      running_(relevant(options.config.at_begin())) {
  if (auto begun = try_out(options.config.at_begin())) values_ = std::move(begun->values);
}

Reload::Settings Reload::relevant(const std::vector<Setting>& all) const {
  Settings settings;
  for (const Setting& setting : all)
    if (!options_.config.is_own(setting) && !options_.config.is_overridden(setting))
      settings[setting.key] = setting;
  return settings;
}

Result<Reload::Trial, std::string> Reload::try_out(const std::vector<Setting>& all) const {
  Trial trial;
  trial.options = std::make_unique<ServeOptions>();
  const auto declare = [&](Arguments& arguments) { trial.options->declare(arguments); };
  const Result<OptionValues, std::string> given = options_.config.try_out(all, declare);
  if (!given) return Failure{given.error()};
  if (const auto checked = trial.options->check(); !checked) return Failure{checked.error()};
  const auto checked =
      trial.options->control.check_beside(options_.control, kNamePatience, ending_);
  if (!checked) return Failure{checked.error()};
  // Behind the checks, which complete what was left open.
  for (const auto& [key, value] : *given) trial.values[key] = value();
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
  const bool follow_file = options_.exports_are_in_file();
  if (follow_file)
    if (auto replaced = replace_exports(*settings); !replaced) return replaced;
  std::vector<std::string> awaiting = apply(relevant(*settings), *now);
  // Each time: an operator who reloads looks at what the log says now.
  for (const std::string& key : awaiting)
    log_notice(Event::SettingNeedsRestart, kReloadSource, key);
  server_.observation.await_restart(std::move(awaiting));
  if (follow_file) return Ok{};
  options_.tell_unused_exports(*settings);
  offer_out("exports: those of --export, as before");
  return Ok{};
}

std::vector<std::string> Reload::changes(const Settings& settings, const Trial& now) const {
  std::vector<std::string> keys;
  const auto differs = [&](const std::string& key) {
    const auto value = now.values.find(key);
    const auto runs = values_.find(key);
    return value == now.values.end() || runs == values_.end() || value->second != runs->second;
  };
  for (const auto& [key, setting] : settings)
    if (differs(key)) keys.push_back(key);
  for (const auto& [key, setting] : running_)
    if (!settings.contains(key) && differs(key)) keys.push_back(key);
  return keys;
}

bool Reload::take_on(const std::string& key, const ServeOptions& now) const {
  if (key == "log-level")
    set_log_level(now.log_level);
  else if (key == "log-format")
    set_log_format(now.log_form());
  else if (key == "slow-call" || key == "trace-client")
    server_.observation.change(now.observe.events());
  else if (is_taken_on(key) || (key == "copy-from" && options_.can_copy_from_servers()))
    server_.take_on(now);
  else
    return false;
  return true;
}

std::vector<std::string> Reload::apply(const Settings& settings, const Trial& now) {
  std::vector<std::string> awaiting;
  for (const std::string& key : changes(settings, now)) {
    if (!take_on(key, *now.options)) {
      awaiting.push_back(key);
      continue;
    }
    const auto found = settings.find(key);
    std::string value;
    if (found != settings.end()) {
      value = settings_text(found->second);
      running_[key] = found->second;
    } else {
      running_.erase(key);
    }
    values_[key] = now.values.at(key);
    if (value.empty()) value = usual_text(key, now.values.at(key));
    log_notice(Event::SettingChanged, kReloadSource, fmt::format("{} = {}", key, value));
    offer_out(fmt::format("settings: {} = {}", key, value));
  }
  return awaiting;
}

Result<Ok, std::string> Reload::replace_exports(const std::vector<Setting>& settings) const {
  auto lines = options_.read_exports(settings);
  if (!lines) return Failure{lines.error().sentence};
  ask_for_hosts(*lines, ending_);
  if (ending_.stop_requested()) return Failure{std::string("the server ends")};
  if (std::string why = options_.kerberos.obstacle(*lines); !why.empty())
    return Failure{std::move(why)};
  const auto replaced = server_.exports.replace(*std::move(lines));
  if (!replaced) return Failure{replaced.error().sentence};
  trace(Reason::NfsExportsChanged, kReloadSource, *replaced);
  offer_out("exports: " + *replaced);
  return Ok{};
}

}  // namespace stag::cli
