// How a configuration file sets the options of a command, as its command line would.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "cli/support/arguments.h"

namespace stag::cli {
namespace {

constexpr const char* kConfig = "--config";

// --no-x has no setting of its own: the file says x = false.
bool spelled(const CLI::App& app, const Setting& setting) {
  const CLI::Option* option = app.get_option_no_throw("--" + setting.key);
  return setting.key != "config" && setting.key != "help" && option != nullptr &&
         option->get_lnames().front() == setting.key;
}

// How a setting of this option is written.
std::string_view form_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return "true or false";
  return option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast
             ? "a text or a number"
             : "a text or an array of texts";
}

bool has_form(const CLI::Option& option, const Setting& setting) {
  const bool flag = option.get_expected_max() == 0;
  const bool single = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast;
  return !(single && setting.is_array) &&
         std::all_of(setting.values.begin(), setting.values.end(), [flag](const Value& value) {
           return !value.is_table && value.is_truth == flag;
         });
}

// The arguments that express the setting on a command line.
std::vector<std::string> words_of(const CLI::Option& option, const Setting& setting,
                                  const std::string& where) {
  if (!has_form(option, setting))
    throw CLI::ValidationError(
        kConfig, fmt::format("{}'{}' must be {}", where, setting.key, form_of(option)));
  std::vector<std::string> words;
  for (const Value& value : setting.values) words.push_back(value.text);
  return words;
}

}  // namespace

bool ConfigFile::is_overridden(const Setting& setting) const {
  return std::find(overridden_.begin(), overridden_.end(), setting.key) != overridden_.end();
}

bool ConfigFile::is_own(const Setting& setting) const {
  return std::find(own_.begin(), own_.end(), setting.key) != own_.end();
}

Result<std::vector<Setting>, std::string> ConfigFile::read() const {
  Result<std::vector<Setting>, std::string> settings = read_config(path_);
  if (!settings) return settings;
  for (const Setting& setting : *settings)
    if (!spelled(*app_, setting))
      return Failure{
          fmt::format("{}there is no setting '{}'; 'stag {} --help' lists the options, "
                      "which are the settings without their dashes",
                      place_in(path_, setting.line), setting.key, app_->get_name())};
  return settings;
}

namespace {

// The settings that the command line does not override.
void apply(CLI::App& app, const ConfigFile& file, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    CLI::Option* option = app.get_option_no_throw("--" + setting.key);
    if (option->count() > 0 || file.is_own(setting)) continue;
    const std::string where = place_in(file.path(), setting.line);
    const std::vector<std::string> words = words_of(*option, setting, where);
    try {
      option->add_result(words);
      option->run_callback();
    } catch (const CLI::Error& error) {
      throw CLI::ValidationError(kConfig, where + error.what());
    }
  }
}

}  // namespace

void apply_file(CLI::App& app, ConfigFile& file) {
  const Result<std::vector<Setting>, std::string> settings = file.read();
  if (!settings) throw CLI::ValidationError(kConfig, settings.error());
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      file.overridden_.push_back(option->get_lnames().front());
  apply(app, file, *settings);
  file.at_begin_ = *settings;
}

Result<OptionValues, std::string> ConfigFile::try_out(
    const std::vector<Setting>& settings, const std::function<void(Arguments&)>& declare) const {
  CLI::App app("", app_->get_name());
  Arguments arguments(app, {});
  declare(arguments);
  try {
    for (const std::string& name : overridden_) {
      CLI::Option* const option = app.get_option("--" + name);
      option->add_result(app_->get_option("--" + name)->results());
      option->run_callback();
    }
    apply(app, *this, settings);
  } catch (const CLI::Error& error) {
    return Failure{std::string(error.what())};
  }
  return arguments.values();
}

}  // namespace stag::cli
