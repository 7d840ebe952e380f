#include "cli/serve/ceph_settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace stag::cli {

Result<Ok, std::string> read_ceph_settings(std::string_view text, CephSettings known,
                                           std::string_view what_there_is) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t equals = std::min(word.find('='), word.size());
    const auto setting = std::ranges::find_if(
        known, [&](const auto& each) { return each.first == word.substr(0, equals); });
    if (setting == known.end() || equals + 1 >= word.size())
      return Failure{fmt::format("'{}' means nothing {}", word, what_there_is)};
    *setting->second = word.substr(equals + 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Ok{};
}

}  // namespace stag::cli
