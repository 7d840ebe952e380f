// The options of exports(5), one word at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nfs/export/exports.h"

namespace stag::cli {

// Whether it is a word of exports(5) for how it is here in any case.
bool says_what_is(std::string_view word);

// What the options of one client say.
struct ExportsWords {
  nfs::ExportOptions options;
  bool flavors_given = false;  // sec=
  std::optional<std::uint64_t> file_system_id{};
  // The folder is exported while something is mounted there: at this path, or at the folder itself
  // if that is empty.
  std::optional<std::string> mount_point{};
  bool elsewhere = false;  // refer=: what is here is not for the client
};

// `remarks` gets sentences on what is not done. Fails with one for what must not be left undone,
// and for words that exports(5) does not have.
Result<ExportsWords, std::string> parse_exports_words(std::string_view text,
                                                      std::vector<std::string>& remarks);

}  // namespace stag::cli
