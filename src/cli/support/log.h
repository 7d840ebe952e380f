// Log lines on standard error: one for every Reason that is traced (base/reason.h) at or above a
// level. Names that peers have chosen are escaped (cli/support/escape.h).
#pragma once

#include <string>

namespace stag::cli {

enum class LogFormat { Text, Json };

// `level` is one of debug, info, warning, error and off. Before any thread is started.
void start_log(const std::string& level, LogFormat format);

}  // namespace stag::cli
