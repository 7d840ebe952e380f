#include "cli/support/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stag::cli {
namespace {

// How many letters have to be replaced, put in or left out to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  std::string found;
  for (const std::string& name : names) {
    const bool begins =
        name.size() > 1 && word.size() > 1 && (name.starts_with(word) || word.starts_with(name));
    const std::size_t far = begins ? 1 : distance(word, name);
    if (far >= least || name.size() < 2) continue;
    least = far;
    found = name;
  }
  return found;
}

}  // namespace stag::cli
