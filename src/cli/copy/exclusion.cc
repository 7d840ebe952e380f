#include "cli/copy/exclusion.h"

#include <fnmatch.h>

#include <algorithm>

namespace stag::cli {

Exclusion::Exclusion(const std::vector<std::string>& patterns) {
  for (const std::string& given : patterns) {
    Pattern pattern{.text = given};
    pattern.directories_only = pattern.text.ends_with('/');
    while (pattern.text.ends_with('/')) pattern.text.pop_back();
    pattern.whole_path = pattern.text.find('/') != std::string::npos;
    const bool anchored = pattern.text.starts_with('/');
    pattern.text.erase(0, pattern.text.find_first_not_of('/'));
    if (pattern.text.find("**") != std::string::npos)
      pattern.crossing = RsyncPattern(pattern.text, anchored);
    if (!pattern.text.empty()) patterns_.push_back(std::move(pattern));
  }
}

Result<std::vector<std::string>, std::string> Exclusion::patterns_in(std::string_view text) {
  std::vector<std::string> patterns;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('#') || line.starts_with(';')) continue;
    if (line.starts_with("+ ") || line == "!") return Failure{std::string(line)};
    if (line.starts_with("- ")) line.remove_prefix(2);
    if (!line.empty()) patterns.emplace_back(line);
  }
  return patterns;
}

bool Exclusion::excludes(std::string_view path, bool directory) const {
  const std::string whole(path);
  const std::string name = whole.substr(whole.rfind('/') + 1);
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    if (!directory && pattern.directories_only) return false;
    if (pattern.crossing) return pattern.crossing->matches(whole, directory);
    const std::string& subject = pattern.whole_path ? whole : name;
    return fnmatch(pattern.text.c_str(), subject.c_str(), FNM_PATHNAME) == 0;
  });
}

}  // namespace stag::cli
