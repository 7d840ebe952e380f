// A program's side of the control socket (control_socket.h): one request, and its rows as they
// come.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_function.h"
#include "cli/support/command.h"
#include "cli/support/json.h"

namespace stag::cli {

// The path where a server with this state directory listens unless told otherwise.
std::string default_control_path(const std::string& state_directory);

// `line` is the row as it came.
using OnRow = UniqueFunction<void(const JsonObject& row, std::string_view line)>;

// Yields an empty string when all rows came, else one sentence. Ends with "interrupted" when `run`
// is cancelled.
Task<std::string> ask_server(Run& run, std::string path, Json request, OnRow on_row);

}  // namespace stag::cli
