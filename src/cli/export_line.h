// What follows --export: "/name=DIR|memory[,option...]", the options being those of exports(5).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "nfs/server/exports.h"

namespace stag::cli {

struct ExportLine {
  std::string path;    // "/name"
  std::string folder;  // empty: memory
  nfs::ExportOptions options;
};

// Fails with one sentence.
Result<ExportLine, std::string> parse_export(std::string_view text);

}  // namespace stag::cli
