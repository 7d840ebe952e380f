// What an operator may not expect of an export that is as the operator wrote it.
#pragma once

#include <string>
#include <vector>

#include "cli/serve/export_line.h"

namespace stag::cli {

// Sentences with the export's place before them.
std::vector<std::string> remarks_on(const ExportLine& line);

}  // namespace stag::cli
