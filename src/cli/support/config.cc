#include "cli/support/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "cli/support/local_file.h"
#include "cli/support/text_file.h"

namespace stag::cli {
namespace {

// As people write it: 0.000000001.
std::string decimal_text(double number) {
  std::array<char, 512> text{};  // of the smallest one there is, 342
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return {text.data(), end.ptr};
}

// The file being read, whose name error messages contain.
class TomlFile {
 public:
  explicit TomlFile(const std::string& path) : path_(path) {}

  Result<std::vector<Setting>, std::string> settings(const toml::table& table) const {
    std::vector<Setting> settings;
    for (const auto& [key, node] : table) {
      Setting setting{std::string(key.str()), {}, node.is_array(), key.source().begin.line};
      // The key of an array of tables is where its first table is.
      if (setting.line == 0) setting.line = node.source().begin.line;
      if (std::optional<std::string> trouble = values(setting, node))
        return Failure{*std::move(trouble)};
      settings.push_back(std::move(setting));
    }
    // Errors are reported in the order of the file.
    std::stable_sort(settings.begin(), settings.end(),
                     [](const Setting& a, const Setting& b) { return a.line < b.line; });
    return settings;
  }

 private:
  std::optional<std::string> values(Setting& setting, const toml::node& node) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) return value(setting, node);
    for (const toml::node& element : *array)
      if (std::optional<std::string> trouble = value(setting, element)) return trouble;
    return std::nullopt;
  }

  std::optional<std::string> value(Setting& setting, const toml::node& node) const {
    Value made;
    made.line = std::max(node.source().begin.line, setting.line);
    if (const toml::table* table = node.as_table()) {
      Result<std::vector<Setting>, std::string> members = settings(*table);
      if (!members) return members.error();
      made.members = *std::move(members);
      made.is_table = true;
    } else if (const auto* text = node.as_string()) {
      made.text = text->get();
    } else if (const auto* number = node.as_integer()) {
      made.text = std::to_string(number->get());
    } else if (const auto* decimal = node.as_floating_point()) {
      made.text = decimal_text(decimal->get());
    } else if (const auto* truth = node.as_boolean()) {
      made.text = truth->get() ? "true" : "false";
      made.is_truth = true;
    } else {
      return fmt::format(
          "{}'{}' must be a text, a number, true or false, a table, or an array of such",
          place_in(path_, made.line), setting.key);
    }
    setting.values.push_back(std::move(made));
    return std::nullopt;
  }

  const std::string& path_;
};

}  // namespace

std::string place_in(const std::string& path, unsigned line) {
  return fmt::format("{}:{}: ", path, line);
}

Result<std::vector<Setting>, std::string> read_config(const std::string& path) {
  if (waits_for_a_writer(path))
    return Failure{fmt::format("'{}' is a FIFO: name a regular file", path)};
  const std::optional<std::string> text = text_of_file(path);
  if (!text) return Failure{fmt::format("cannot read '{}': {}", path, std::strerror(errno))};
  try {
    return TomlFile(path).settings(toml::parse(*text, path));
  } catch (const toml::parse_error& error) {
    return Failure{
        fmt::format("{}{}", place_in(path, error.source().begin.line), error.description())};
  }
}

}  // namespace stag::cli
