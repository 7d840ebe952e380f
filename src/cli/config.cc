#include "cli/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace stag::cli {
namespace {

// As it would stand on the command line; nothing for what cannot stand there.
std::optional<std::string> word(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<std::vector<std::string>> words(const toml::node& node) {
  std::vector<std::string> out;
  const toml::array* array = node.as_array();
  if (array == nullptr) {
    std::optional<std::string> one = word(node);
    if (!one) return std::nullopt;
    out.push_back(*std::move(one));
    return out;
  }
  for (const toml::node& element : *array) {
    std::optional<std::string> one = word(element);
    if (!one) return std::nullopt;
    out.push_back(*std::move(one));
  }
  return out;
}

}  // namespace

Result<std::vector<Setting>, std::string> read_config(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!(file && text << file.rdbuf()))
    return Failure{fmt::format("cannot read '{}': {}", path, std::strerror(errno))};
  toml::table table;
  try {
    table = toml::parse(text.str(), path);
  } catch (const toml::parse_error& error) {
    return Failure{fmt::format("{}:{}: {}", path, error.source().begin.line, error.description())};
  }
  std::vector<Setting> settings;
  for (const auto& [key, node] : table) {
    const unsigned line = key.source().begin.line;
    std::optional<std::vector<std::string>> values = words(node);
    if (!values)
      return Failure{fmt::format(
          "{}:{}: '{}' must be a text, a whole number, true or false, or an array of such", path,
          line, key.str())};
    settings.push_back({std::string(key.str()), *std::move(values), line});
  }
  // The first mistake in the file is told first.
  std::sort(settings.begin(), settings.end(),
            [](const Setting& a, const Setting& b) { return a.line < b.line; });
  return settings;
}

}  // namespace stag::cli
