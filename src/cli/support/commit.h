// The commit that the program was built from (cmake/commit.cmake): in a file of its own, which
// alone is compiled again when it is another one.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace stag::cli {

// Its first twelve digits, with "-dirty" behind them where the work tree had changes that were not
// committed. Empty for sources without git.
std::string_view commit();

// "0.1.0 (1ecb70cc0123)": what tells builds of one version apart.
inline std::string build_name(std::string_view version, std::string_view commit) {
  return commit.empty() ? std::string(version) : fmt::format("{} ({})", version, commit);
}

}  // namespace stag::cli
