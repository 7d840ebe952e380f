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
    pattern.text.erase(0, pattern.text.find_first_not_of('/'));
    if (!pattern.text.empty()) patterns_.push_back(std::move(pattern));
  }
}

bool Exclusion::excludes(std::string_view path, bool directory) const {
  const std::string whole(path);
  const std::string name = whole.substr(whole.rfind('/') + 1);
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    const std::string& subject = pattern.whole_path ? whole : name;
    return (directory || !pattern.directories_only) &&
           fnmatch(pattern.text.c_str(), subject.c_str(), FNM_PATHNAME) == 0;
  });
}

}  // namespace stag::cli
