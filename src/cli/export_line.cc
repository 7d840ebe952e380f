#include "cli/export_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace stag::cli {

Result<ExportLine, std::string> parse_export(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t comma = std::min(text.find(',', std::min(equals, text.size())), text.size());
  if (equals == std::string_view::npos || equals == 0 || text[0] != '/' || comma == equals + 1)
    return Failure{fmt::format(
        "--export '{}' is not understood; write /name=DIR or /name=memory, then options: "
        "/data=/srv/data,ro,all_squash",
        text)};
  ExportLine line;
  line.path = text.substr(0, equals);
  line.folder = text.substr(equals + 1, comma - equals - 1);
  if (line.folder == "memory") line.folder.clear();
  const std::string_view options = text.substr(std::min(comma + 1, text.size()));
  const Result<nfs::ExportOptions, nfs::ExportError> parsed = nfs::parse_export_options(options);
  if (!parsed) return Failure{fmt::format("--export '{}': {}", text, parsed.error().message)};
  line.options = *parsed;
  return line;
}

}  // namespace stag::cli
