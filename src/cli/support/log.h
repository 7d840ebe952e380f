// Log lines on standard error: one for every Reason that is traced (base/reason.h) at or above a
// level. Names that peers have chosen are escaped (cli/support/escape.h).
#pragma once

#include <string>
#include <string_view>

#include "base/reason.h"

namespace stag::cli {

enum class LogFormat { Text, Json };

// `level` is one of debug, info, warning, error and off. Before any thread is started.
void start_log(const std::string& level, LogFormat format);

// A line about the program itself, which nobody can cause as often as he likes: in the form of
// those of Reasons. Thread: any.
void log_notice(const ReasonInfo& about, std::string_view where, std::string_view detail = {});
// Changes the level while other threads run.
void set_log_level(const std::string& level);

}  // namespace stag::cli
