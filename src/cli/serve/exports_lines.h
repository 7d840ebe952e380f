// The words of a file in the form of exports(5): lines, quotes, escapes and comments.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stag::cli {

// One client with what stands in parentheses behind it.
struct ExportsClient {
  std::string match;    // empty: only parentheses were there
  std::string options;  // comma-separated
  bool parentheses = false;
};

struct ExportsLine {
  unsigned number = 0;  // from 1 on; of its first line
  std::string folder;
  std::string defaults;  // behind '-'
  std::vector<ExportsClient> clients;
};

// Lines without words are left out. Fails with "LINE: sentence" for a quote or a parenthesis that
// does not end, and for a parenthesis that something follows without a blank.
Result<std::vector<ExportsLine>, std::pair<unsigned, std::string>> split_exports(
    std::string_view text);

}  // namespace stag::cli
